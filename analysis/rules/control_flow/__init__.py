"""GM1: control flow on tensors."""
