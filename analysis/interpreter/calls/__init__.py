"""What calls are worth, by what is called."""
