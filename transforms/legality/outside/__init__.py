"""What code outside of a function does with what it gives and writes."""
