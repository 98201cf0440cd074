"""Example inputs: given ones, and those made from what the code says."""
