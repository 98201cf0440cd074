"""Which random numbers are drawn, and what keeps a draw in a compiled program."""
