"""Forms of loops and branches that the rewrites of control flow know, a file a subject."""
