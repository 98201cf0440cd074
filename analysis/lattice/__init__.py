"""The lattice of abstract values, environments of names, and the evidence that values carry."""
