"""GM2: output and other side effects."""
