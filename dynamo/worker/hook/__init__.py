"""A folder for PYTHONPATH; a package only so that it is installed."""
