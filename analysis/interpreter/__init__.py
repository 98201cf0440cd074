"""Abstract interpretation of one function: values in, events out."""
