"""Rewrites of calls of torch, and switches of the compiler."""
