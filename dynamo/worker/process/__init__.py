"""The warm parent: forks a process for each check, and ends it in time."""
