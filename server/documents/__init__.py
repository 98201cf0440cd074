"""Open documents: their texts, positions in them, notebooks."""
