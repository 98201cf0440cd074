"""Interprocedural analysis: calls, summaries of functions, recursion, verdicts, results shared between files."""
