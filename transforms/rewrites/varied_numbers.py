"""Numbers that differ between the calls of compiled code, and the 0-d tensors that may stand for them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Literal

from graphmend.transforms.code.qualified_names import constant

if TYPE_CHECKING:
    from graphmend.analysis.driver.guards.variation import Variation
    from graphmend.transforms.code.imports import Imports

Kind = Literal["int", "float"]

#: in which a Python number is exact: a float is a double
DTYPES: dict[Kind, str] = {"int": "int64", "float": "float64"}


def kind_of(variation: Variation) -> Kind | None:
    """The type of the numbers that differ; None where they are of several types, or no ints or floats."""
    values = [v for change in variation.changes for v in change]
    types = {v[0] if isinstance(v, tuple) and len(v) == 2 else type(v).__name__ for v in values}
    return "int" if types == {"int"} else "float" if types == {"float"} else None


def as_tensor(imports: Imports, kind: Kind, node: ast.expr | None, text: str) -> str:
    """The text of a 0-d tensor of a number, in which it is exact."""
    number = constant(node)
    dtype = imports.name(f"torch.{DTYPES[kind]}")
    if number == 0 and isinstance(number, (int, float)) and str(number)[0] != "-":
        return f"{imports.name('torch.zeros')}((), dtype={dtype})"
    if kind == "int":  # without a dtype, for what is no whole number after all must not lose its fraction
        return f"{imports.name('torch.tensor')}({text})"
    return f"{imports.name('torch.tensor')}({text}, dtype={dtype})"
