"""What a function's source and the layers of a module say of the values that it takes."""
