"""Numbers and sizes that tensors decide, kept in the graph where that holds, and what happens where it does not."""
