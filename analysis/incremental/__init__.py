"""The analysis of one file, kept up to date through edits."""
