"""What torch has for Python's functions of numbers, and what differs: the text of a use that must change where a 0-d
tensor stands for the number. Measured with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

from graphmend.analysis.lattice.values import dtype_kind
from graphmend.transforms.code.qualified_names import constant
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.numbers.as_tensors import PRECISION, WRAPS

#: functions of `math` that torch has for tensors under the same name
MATH = frozenset(
    "sqrt exp log log2 log10 log1p expm1 sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh floor ceil trunc "
    "erf erfc lgamma fabs isnan isinf isfinite".split()
)
RENAMED = {"fabs": "abs"}
#: they give the same in Python and in torch, for every double
EXACT = frozenset("sqrt fabs floor ceil trunc isnan isinf isfinite".split())
#: they raise for no number in Python
TOTAL = frozenset("fabs isnan isinf isfinite atan tanh asinh erf erfc".split())
WHOLE = frozenset("floor ceil trunc".split())

#: functions of NumPy, by the name that torch has for each; of a number they give a number of NumPy's
NUMPY = {name: name for name in (MATH - {"erf", "erfc", "lgamma"}) | {"square"}} | {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    "fabs": "abs", "abs": "abs", "absolute": "abs",
}  # fmt: skip
#: they keep whole numbers whole
_KEEPING = frozenset("floor ceil trunc square abs absolute".split())

BEYOND = Difference("rounding", "`int` of a number beyond 64 bits wraps around")
NOT_WHOLE = Difference("exception", "`int` of NaN or infinity no longer raises")


@dataclass(frozen=True)
class Counterpart:
    """The text of a call once its argument is a tensor: `function(argument, options)suffix`, or `argument.suffix`."""

    argument: ast.expr
    suffix: str = ""
    function: str = ""
    """Below `torch`."""
    options: str = ""
    cast: ast.expr | None = None
    """The dtype that it is cast to."""
    bounds: tuple[tuple[str, ast.expr], ...] = ()
    """Further expressions, each the one argument of a `clamp` behind it, by keyword."""
    like: ast.expr | None = None
    """A tensor, in whose dtype torch computes with a Python number of this kind."""
    floating: bool = False
    """Is that tensor known to hold floating numbers, so that its dtype is the one?"""
    real: bool = False
    """Is it known to hold no complex ones, whose dtype is the one as well?"""
    said: tuple[tuple[ast.Name, str], ...] = ()
    """Names in it that give their number back where it is said, and how: "item", or a builtin."""


def joined(forms: dict[ast.expr, Counterpart], more: Mapping[ast.expr, Counterpart]) -> None:
    """Takes in further forms: an expression may say several numbers."""
    for node, form in more.items():
        before = forms.get(node)
        both = (*before.said, *form.said) if before is not None else form.said
        forms[node] = replace(form, said=tuple(dict.fromkeys(both)))


@dataclass(frozen=True)
class Result:
    """What a call gives where a tensor of a dtype stands for its number."""

    dtype: Hashable
    differences: tuple[Difference, ...] = ()
    form: Counterpart | None = None
    """None where the call takes a tensor as it is written."""
    computes: bool = False
    """Does a wider dtype do it as Python does?"""


def of_number(call: ast.Call, folder: str, last: str, dtype: Hashable) -> Result | None:
    """A function of one number, of `builtins`, `math` or `numpy`; None for others."""
    if folder == "math":
        return mathematical(call, last, dtype)
    if folder == "numpy":
        return of_numpy(call, last, dtype)
    return of_builtin(call, last, dtype) if folder == "builtins" else None


def of_builtin(call: ast.Call, last: str, dtype: Hashable) -> Result | None:
    """`int(s)`, `float(s)`, `bool(s)`, `round(s)`, `round(s, 2)`; None for other builtins."""
    if not call.args or call.keywords:
        return None
    argument, kind = call.args[0], dtype_kind(dtype)
    if last == "round" and len(call.args) <= 2:
        return _rounded(call, dtype)
    if len(call.args) != 1:
        return None
    if last == "bool":
        return Result("bool", (), Counterpart(argument, " != 0"))
    if last == "float":
        return Result("float64", (), None if dtype == "float64" else Counterpart(argument, ".double()"))
    if last == "int":
        found = () if kind in ("int", "bool") else (NOT_WHOLE, BEYOND)
        return Result("int64", found, None if dtype == "int64" else Counterpart(argument, ".long()"))
    return None


def _rounded(call: ast.Call, dtype: Hashable) -> Result | None:
    kind = dtype_kind(dtype)
    if len(call.args) == 1:
        if kind in ("int", "bool"):
            return Result("int64", (), Counterpart(call.args[0], ".long()"))
        return Result("int64", (NOT_WHOLE, BEYOND), Counterpart(call.args[0], ".long()", "round"))
    digits = constant(call.args[1])
    if not isinstance(digits, int) or kind != "float":
        return None
    rounding = Difference("rounding", "torch rounds to digits by a multiplication, Python by the decimal text")
    return Result(dtype, (rounding,), Counterpart(call.args[0], "", "round", f", decimals={digits}"), True)


def bounded(number: ast.expr, bound: ast.expr, last: str, dtype: Hashable, of: str | None) -> Result:
    """`max(s, 0.0)` and `min(s, 0.0)`, where the other one is a Python number of type `of`."""
    kind = dtype_kind(dtype)
    found: list[Difference] = []
    if kind not in ("int", "bool"):
        found.append(Difference("nan", f"`{last}` of NaN and a number is NaN"))
    same = kind == of or (kind, of) == ("int", "bool")
    if not same:
        found.append(Difference("dtype", f"`{last}` gives the wider type of whole and other numbers"))
    wider = dtype if same else "float32" if kind in ("int", "bool") and of == "float" else dtype if kind else None
    form = Counterpart(number, bounds=(("min" if last == "max" else "max", bound),))
    return Result(wider, tuple(found), form)


def mathematical(call: ast.Call, last: str, dtype: Hashable) -> Result | None:
    """`math.sqrt(s)` and its like."""
    if last not in MATH or len(call.args) != 1 or call.keywords:
        return None
    found: list[Difference] = []
    if last not in EXACT:
        found.append(Difference("rounding", f"torch's `{last}` may round otherwise than Python's"))
    if dtype != "float64":
        found.append(PRECISION)
    if last in WHOLE:
        found.append(Difference("rounding", "whole numbers beyond 64 bits wrap around"))
    if last not in TOTAL:
        says = f"`math.{last}` raises outside its domain, torch gives NaN or infinity"
        found.append(Difference("exception", says))
    kind = dtype_kind(dtype)
    result = "int64" if last in WHOLE else "bool" if last.startswith("is") else dtype if kind == "float" else "float32"
    suffix = ".long()" if last in WHOLE else ""
    form = Counterpart(call.args[0], suffix, RENAMED.get(last, last))
    return Result(result, tuple(found), form, dtype != "float64")


def of_numpy(call: ast.Call, last: str, dtype: Hashable) -> Result | None:
    """`np.sqrt(s)` and its like, which give a double for a number, or for a whole one perhaps a whole one."""
    kind = dtype_kind(dtype)
    if last not in NUMPY or len(call.args) != 1 or call.keywords or kind not in ("int", "float"):
        return None
    if last in _KEEPING and kind != "float":
        return None
    name, found = NUMPY[last], []
    if name not in EXACT and name not in ("square", "abs"):
        found.append(Difference("rounding", f"torch's `{name}` may round otherwise than NumPy's"))
    if dtype != "float64":
        found.append(PRECISION)
    if name not in TOTAL and name not in ("abs", "floor", "ceil", "trunc"):
        found.append(Difference("output", f"`{ast.unparse(call.func)}` no longer warns outside its domain"))
    result = "bool" if last.startswith("is") else dtype if kind == "float" else "float32"
    return Result(result, tuple(found), Counterpart(call.args[0], "", name), dtype != "float64")


def listed(call: ast.Call, dtype: Hashable) -> Result | None:
    """`torch.tensor(numbers)` of numbers that are tensors now."""
    keywords = {k.arg: k.value for k in call.keywords}
    if len(call.args) != 1 or set(keywords) - {"dtype"}:
        return None
    kind = dtype_kind(dtype)
    cast = "" if keywords else {"float": ".float()", "int": ".long()"}.get(kind or "", "")
    found = [Difference("dtype", "the new tensor is on the device of those it is made of, in torch's usual dtype")]
    if not keywords and kind not in ("float", "int", "bool"):
        found.append(Difference("dtype", "the new tensor has the dtype of those it is made of"))
    return Result(dtype, tuple(found), Counterpart(call.args[0], cast, "stack", cast=keywords.get("dtype")))


def sorted_(call: ast.Call, dtype: Hashable) -> Result | None:
    """`sorted(numbers)` of numbers that are tensors now: a tensor of one dimension."""
    falls = [constant(k.value) for k in call.keywords if k.arg == "reverse"]
    if len(falls) < len(call.keywords) or not all(isinstance(f, bool) for f in falls):
        return None
    found: list[Difference] = []
    kind = dtype_kind(dtype)
    if kind not in ("int", "bool"):
        found.append(Difference("nan", "`sorted` leaves a NaN anywhere, torch puts it last"))
    if kind is None:
        found.append(Difference("dtype", "numbers of several types have one when they are sorted"))
    options = "descending=True, stable=True" if any(falls) else "stable=True"
    return Result(dtype, tuple(found), Counterpart(call.args[0], f".sort({options}).values", "stack"))


def copied(call: ast.Call, dtype: Hashable) -> Result | None:
    """`torch.tensor(number)` of a number that is computed from tensors."""
    found = listed(call, dtype)
    if found is None or found.form is None or isinstance(call.args[0], (ast.List, ast.Tuple, ast.ListComp)):
        return None
    cast = [k.value for k in call.keywords]
    suffix = ".clone()" + found.form.suffix
    return Result(dtype, found.differences, Counterpart(call.args[0], suffix, cast=cast[0] if cast else None))


def statistic(call: ast.Call, last: str, dtype: Hashable) -> Result:
    """`np.mean(numbers)` and its like, of numbers that are tensors now."""
    name = {"fmean": "mean", "max": "amax", "min": "amin"}.get(last, last)
    form = Counterpart(call.args[0], f".{name}()", "stack")
    if name in ("amax", "amin") or (name == "sum" and dtype_kind(dtype) in ("int", "bool")):
        return Result(dtype, (WRAPS,) if name == "sum" else (), form)
    suffix = f".double().{name}()" if dtype_kind(dtype) != "float" else form.suffix
    rounding = Difference("rounding", f"torch adds in another order than `{last}`")
    wide = dtype if dtype_kind(dtype) == "float" else "float64"
    return Result(wide, (rounding,), Counterpart(call.args[0], suffix, "stack"), dtype != "float64")
