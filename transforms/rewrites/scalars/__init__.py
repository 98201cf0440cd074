"""Rewrites of scalars taken out of tensors."""
