"""Regions: the roots at which TorchDynamo starts to trace, and the options with which it does."""
