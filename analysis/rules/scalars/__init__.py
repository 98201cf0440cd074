"""GM3: scalars taken out of tensors."""
