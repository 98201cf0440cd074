"""Guards: what a graph that TorchDynamo compiled takes for granted of the calls that use it again."""
