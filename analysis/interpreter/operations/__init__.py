"""What conditions, operators, attributes and subscripts are worth."""
