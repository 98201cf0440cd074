"""Facts about one function: the values and environments that its walks computed, recorded for rewrites."""
