"""Transfer functions of torch and NumPy operations: rank, dtype and shape of the result from those of the operands."""
