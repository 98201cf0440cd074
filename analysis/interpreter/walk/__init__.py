"""The walk: statements and expressions in order, control flow with its joins, and assignment."""
