"""What TorchDynamo did: breaks, their places, graphs."""
