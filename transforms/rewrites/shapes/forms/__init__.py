"""Forms of slices that `tensor_slice` knows, a file a subject."""
