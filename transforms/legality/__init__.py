"""What must be known before code is moved, repeated or computed in vain."""
