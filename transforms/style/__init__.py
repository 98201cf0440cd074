"""How mended text is written: as a person would write it in that file."""
