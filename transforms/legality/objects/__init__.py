"""What objects of the program are: which classes only hold fields, and run no code for them."""
