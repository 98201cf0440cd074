"""Transfer functions: what operations of torch and NumPy give for the tensors that they are given."""
