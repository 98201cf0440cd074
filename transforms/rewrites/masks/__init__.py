"""Rewrites of what programs do with masks as a whole: leave them out, fill in order, ask for the extent."""
