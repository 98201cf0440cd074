"""Forms of calls that `torch_form` knows, a file a subject."""
