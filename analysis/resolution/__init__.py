"""What names, annotations, classes, parameters and attributes stand for."""
