"""Reports of `verify`, one format a file."""
