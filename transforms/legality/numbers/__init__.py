"""Python numbers, and the tensors that stand for them."""
