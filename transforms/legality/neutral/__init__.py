"""Masks that mask nothing: what a test says of every element of a mask, and where such a mask may as well be absent."""
