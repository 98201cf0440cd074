"""Forms of values that `hoist` knows, a file a subject."""
