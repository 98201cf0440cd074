"""The walks of all functions that tracing gets to: summaries, verdicts, and what calls of other modules give."""
