"""What `sweep` does with many targets: which there are, one of them run, results that survive, where they run."""
