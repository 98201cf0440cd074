"""When one operation raises, Python's own and torch's. Each answer is a reason, or None where it never does."""
