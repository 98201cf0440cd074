"""What a place holds before a branch, and what may read it again."""
