"""What small integer inputs alone decide, computed while tracing and held by guards."""
