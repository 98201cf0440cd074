"""What TorchDynamo is asked while it traces: what a call is made of, and whether a graph can carry it."""
