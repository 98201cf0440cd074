"""Calls that become one node of the graph, through `graphmend.runtime`."""
