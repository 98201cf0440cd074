"""Transfer functions of calls, by what is called."""
