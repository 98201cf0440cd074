"""What `check` does with files."""
