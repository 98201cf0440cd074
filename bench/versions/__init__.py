"""GraphMend with each torch that it supports."""
