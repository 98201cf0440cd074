"""What torch's operations do, as tables by question; tests hold them against the torch that is installed."""
