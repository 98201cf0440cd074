"""What Jupyter asks for by entry point and extension."""
