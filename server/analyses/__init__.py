"""What the analysis says of open documents and of the workspace."""
