"""The formats of `sweep`'s report, one a file; each is made of the lines of the results."""
