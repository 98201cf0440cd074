"""What an index picks, and the forms of it."""
