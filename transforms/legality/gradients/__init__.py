"""Which gradients values carry, and what a mend does to them."""
