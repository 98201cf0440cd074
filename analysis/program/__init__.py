"""What modules define, before anything is evaluated; the project that they belong to."""
