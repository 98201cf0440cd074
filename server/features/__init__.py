"""The other features, one a file."""
