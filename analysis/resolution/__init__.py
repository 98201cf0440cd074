"""Resolution: the values of names, annotations, classes, parameters and attributes, without walking a function."""
