"""Texts, positions and syntax trees, without any semantics."""
