"""What torch says about itself, as data; one file for each minor version."""
