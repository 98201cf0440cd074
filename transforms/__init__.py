"""Finding in, `Fix` or `Refusal` out. The only room that knows libcst."""
