"""Python numbers in lists, dictionaries and objects, which hold 0-d tensors instead."""
