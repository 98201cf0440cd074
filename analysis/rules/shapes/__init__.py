"""GM4: data-dependent shapes."""
