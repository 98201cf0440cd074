"""Where tracing starts, and with which of TorchDynamo's switches."""
