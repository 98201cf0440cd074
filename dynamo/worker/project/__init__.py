"""What the files around the checked one say about it: its configurations, and how its classes are made and called."""
