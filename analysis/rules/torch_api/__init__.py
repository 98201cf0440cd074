"""GM6: autograd and other calls of torch."""
