"""Jupyter notebooks as the modules that their cells make."""
