"""Transfer functions of conditions, operators, attributes and subscripts."""
