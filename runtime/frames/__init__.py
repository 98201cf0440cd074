"""Which frames TorchDynamo traces, and what of a program it comes to in them."""
