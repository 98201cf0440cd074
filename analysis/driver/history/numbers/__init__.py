"""What driver code computes with: numbers that it writes down, computes, or draws at random."""
