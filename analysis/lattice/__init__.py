"""Abstract values, what names are worth at a place, and the evidence that values carry."""
