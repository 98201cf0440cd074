"""What is changed in place: which tensors, by which code, and between which places."""
