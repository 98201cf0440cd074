"""What names mean in a file: whether a function is still the one that its name was given first."""
