"""Which arguments of torch's operations may be a Python number as well as a 0-d tensor."""

from __future__ import annotations

import ast

#: arithmetic of a tensor and a number, as the operator that it stands for
OPERATORS: dict[str, type[ast.operator]] = {
    "add": ast.Add, "sub": ast.Sub, "subtract": ast.Sub, "mul": ast.Mult, "multiply": ast.Mult, "div": ast.Div,
    "divide": ast.Div, "true_divide": ast.Div, "pow": ast.Pow, "float_power": ast.Pow, "remainder": ast.Mod,
    "fmod": ast.Mod, "floor_divide": ast.FloorDiv,
}  # fmt: skip
COMPARISONS = frozenset("eq ne lt le gt ge greater less greater_equal less_equal not_equal".split())
#: they take one bound as a tensor
BOUNDS = frozenset("clamp clip clamp_min clamp_max".split())
#: they write a number into the tensor that they are given
FILLS = {"fill_": 1, "fill": 1, "masked_fill": 2, "masked_fill_": 2, "index_fill": 3, "index_fill_": 3}
#: they make a new tensor, by the place of the number among as many arguments
NEW_FILLED = frozenset([("full_like", 1, 2), ("new_full", 2, 3)])
KEYWORDS = frozenset("other value exponent min max fill_value".split())
