"""The machine that executes driver code, by what is executed."""
