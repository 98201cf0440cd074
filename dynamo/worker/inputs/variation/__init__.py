"""Further inputs, made from those that are known to fit."""
