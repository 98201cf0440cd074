"""Texts of code, and edits of them: what every rewrite writes with."""
