"""Makes the tables of torch's facts from the files of a wheel; run by maintainers only."""
