"""Elements and rows that are picked out of tensors, and whether code works on each by itself."""
