"""Functions of the file whose bodies stand in the place of their calls."""
