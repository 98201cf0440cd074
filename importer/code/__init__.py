"""How a mended text becomes code, in the lines of its file, and the code of what is loaded."""
