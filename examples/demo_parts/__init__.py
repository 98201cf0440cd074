"""What `demo.py` is made of: an editor, the two models, and a process that runs them."""
