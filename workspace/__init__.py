"""What lies between the analysis and the file system: configuration, files, other modules, the cache."""
