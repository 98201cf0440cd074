"""Texts and syntax trees, read without giving them a meaning."""
