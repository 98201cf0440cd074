"""Rewrites of control flow on tensors."""
