"""What the error of a try tells: of the inputs, and of what the object was made with."""
