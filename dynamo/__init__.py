"""The background check: TorchDynamo, in the user's interpreter, confirms what the analysis found."""
