"""Driver code: abstract execution of what builds models and compiles them, outside of what is traced."""
