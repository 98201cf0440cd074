"""What a side of a branch gives, and how it is written as a function."""
