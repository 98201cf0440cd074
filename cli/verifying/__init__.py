"""What `verify` compares with."""
