"""What a walk saw in one function, for whoever decides about rewrites."""
