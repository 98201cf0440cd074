"""What TorchDynamo said, and how long it holds."""
