"""Forms of sizes that the rewrites of shapes know, a file a subject."""
