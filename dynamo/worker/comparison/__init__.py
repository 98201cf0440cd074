"""Two texts, run on the same inputs: what each call left behind, and how it differs."""
