"""What the bodies of functions and modules do, as far as the code in reach tells."""
