"""What torch has for Python's functions of numbers, and what differs: the text of a use that must change where a 0-d
tensor stands for the number. Measured with torch 2.13.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace

from graphmend.analysis.lattice.values import dtype_kind
from graphmend.transforms.code.qualified_names import constant
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.numbers.as_tensors import OVERFLOW, POWER, PRECISION, WRAPS

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

BEYOND = Difference("overflow", "`int` of a number beyond 64 bits wraps around")
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
    filled: ast.expr | None = None
    """What the new tensor is filled with."""
    like: ast.expr | None = None
    """A tensor, in whose dtype torch computes with a Python number of this kind."""
    floating: bool = False
    """Is that tensor known to hold floating numbers, so that its dtype is the one?"""
    real: bool = False
    """Is it known to hold no complex ones, whose dtype is the one as well?"""
    formula: str = ""
    """The whole text instead, with fields for `parts`, and names of torch."""
    parts: tuple[tuple[str, ast.expr], ...] = ()
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
    of_any: bool = False
    """Is the form as right for what is a Python number still, as nothing has made a tensor of it yet?"""


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
        return Result("float64", (), Counterpart(argument, ".double()"))
    if last == "int":
        found = () if kind in ("int", "bool") else (NOT_WHOLE, BEYOND)
        return Result("int64", found, Counterpart(argument, ".long()"))
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
    """`math.sqrt(s)` and its like, `math.pow(s, 2)`."""
    if last == "pow" and len(call.args) == 2 and not call.keywords and dtype_kind(dtype) in ("float", "int"):
        exponent = constant(call.args[1])
        if not isinstance(exponent, (int, float)):
            return None
        raises = Difference("exception", "a power that Python cannot compute no longer raises")
        suffix = "" if dtype_kind(dtype) == "float" else ".double()"
        form = Counterpart(call.args[0], f"{suffix} ** {exponent}")
        return Result(dtype if not suffix else "float64", (POWER, raises), form, dtype != "float64")
    if last == "isclose":
        return _close(call, dtype)
    if last not in MATH or len(call.args) != 1 or call.keywords:
        return None
    found: list[Difference] = []
    if last not in EXACT:
        found.append(Difference("rounding", f"torch's `{last}` may round otherwise than Python's"))
    if dtype != "float64":
        found.append(PRECISION)
    if last in WHOLE:
        found.append(Difference("overflow", "whole numbers beyond 64 bits wrap around"))
    if last not in TOTAL:
        says = f"`math.{last}` raises outside its domain, torch gives NaN or infinity"
        found.append(Difference("exception", says))
    kind = dtype_kind(dtype)
    result = "int64" if last in WHOLE else "bool" if last.startswith("is") else dtype if kind == "float" else "float32"
    suffix = ".long()" if last in WHOLE else ""
    form = Counterpart(call.args[0], suffix, RENAMED.get(last, last))
    return Result(result, tuple(found), form, dtype != "float64")


def _close(call: ast.Call, dtype: Hashable) -> Result | None:
    """`math.isclose(s, 1.0)`: of a number and another one, which may be a tensor by then, too."""
    given = {k.arg: constant(k.value) for k in call.keywords}
    relative, absolute = given.pop("rel_tol", 1e-9), given.pop("abs_tol", 0.0)
    bounds = [n for n in (relative, absolute) if isinstance(n, (int, float)) and math.isfinite(n) and n >= 0]
    if len(call.args) != 2 or given or len(bounds) < 2 or dtype_kind(dtype) != "float":
        return None
    (rel, least), other = map(float, bounds), constant(call.args[1])
    if isinstance(other, (int, float)) and math.isfinite(other):
        allowed = f"({{one}}.abs().clamp(min={abs(float(other))!r}) * {rel!r}).clamp(min={least!r})"
        text = f"((({{one}} - {float(other)!r}).abs() <= {allowed}) & {{one}}.isfinite())"
    else:
        apart = "abs({one} - {other})"
        near = [f"({apart} <= abs({{{name}}}) * {rel!r})" for name in ("one", "other")]
        near += [f"({apart} <= {least!r})"] if least else []
        text = f"(({{one}} == {{other}}) | (({' | '.join(near)}) & ({apart} < torch.inf)))"
    found = () if dtype == "float64" else (PRECISION,)
    form = Counterpart(call, formula=text, parts=(("one", call.args[0]), ("other", call.args[1])))
    return Result("bool", found, form, dtype != "float64")


def of_numpy(call: ast.Call, last: str, dtype: Hashable) -> Result | None:
    """`np.sqrt(s)` and its like, which give a double for a number, or for a whole one perhaps a whole one."""
    kind = dtype_kind(dtype)
    if last in _BOUNDED:
        return _clamped(call, last, dtype)
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


#: they give the bound where it is passed, and NaN for NaN, as `clamp` does
_BOUNDED = {"maximum": ("min",), "minimum": ("max",), "clip": ("min", "max")}


def _clamped(call: ast.Call, last: str, dtype: Hashable) -> Result | None:
    """`np.maximum(s, 0.5)`, `np.clip(s, 0.1, 1.0)`, of a float and numbers that are written out."""
    bounds = [constant(argument) for argument in call.args[1:]]
    plain = [b for b in bounds if isinstance(b, (int, float)) and not isinstance(b, bool)]
    if dtype_kind(dtype) != "float" or call.keywords or len(plain) != len(bounds) or len(plain) != len(_BOUNDED[last]):
        return None
    given = ", ".join(f"{name}={bound!r}" for name, bound in zip(_BOUNDED[last], plain, strict=True))
    found = () if dtype == "float64" else (PRECISION,)
    return Result(dtype, found, Counterpart(call.args[0], f".clamp({given})"), dtype != "float64")


#: what makes a tensor of numbers, in which 0-d tensors may stand among them; with the dtype that it always gives
MAKERS = {
    "torch.tensor": None, "torch.as_tensor": None, "torch.Tensor.new_tensor": None,
    "torch.FloatTensor": "float", "torch.Tensor": "float", "torch.LongTensor": "int",
}  # fmt: skip
ARRAYS = ("numpy.array", "numpy.asarray")
_FLOATING = ("float16", "bfloat16", "float32", "float64", "half", "float", "double")
_OF_ONE = ("torch.tensor", "torch.as_tensor", "torch.Tensor.new_tensor")
_CASTS = {"float": ".float()", "int": ".long()"}
_FLOAT32 = Difference("dtype", "the new tensor is of float32, whatever the default dtype")
_DEVICE = Difference("dtype", "the new tensor is on the device of the one it is made of, in torch's usual dtype")
_DTYPE = Difference("dtype", "the new tensor has the dtype of what it is made of, where that is no usual one")


def listed(call: ast.Call, name: str, dtype: Hashable, kind: str | None) -> Result | None:
    """A call that makes a tensor or an array of numbers, some of which are tensors now; together they are of a kind,
    None where that is not known. None for a call that takes none.
    """
    options = {k.arg: k.value for k in call.keywords}
    if len(call.args) != 1 or set(options) - {"dtype", "device"}:
        return None
    if name in ARRAYS:
        wide = {"float": "float64", "int": "int64", "bool": "bool"}.get(dtype_kind(dtype) or "")
        narrow = (PRECISION,) if wide is None else ()
        return Result(dtype, narrow, computes=dtype != wide) if set(options) <= {"dtype"} else None
    cast, fixed = options.get("dtype"), MAKERS[name]
    if name == "torch.Tensor.new_tensor" and cast is None:
        return None if (suffix := _like_receiver(call)) is None else _made(call, dtype, [OVERFLOW, PRECISION], suffix)
    if cast is not None and (kind in ("bool", "int") or (isinstance(cast, ast.Attribute) and cast.attr in _FLOATING)):
        return _made(call, dtype, [OVERFLOW], "", f", dtype={ast.unparse(cast)}")
    if cast is not None:  # a tensor of floats in a list becomes no whole number
        return _made(call, dtype, [OVERFLOW, PRECISION], f".to({ast.unparse(cast)})")
    if fixed == "int" and kind != "int":
        return None
    if fixed is None and kind is None:
        return _made(call, dtype, [_DTYPE], "")
    found = [_FLOAT32] if kind == "float" and fixed is None else []
    return _made(call, dtype, found, _CASTS.get(fixed or kind or "", ""))


def _made(call: ast.Call, dtype: Hashable, found: list[Difference], suffix: str, options: str = "") -> Result:
    options += "".join(f", {k.arg}={ast.unparse(k.value)}" for k in call.keywords if k.arg != "dtype")
    return Result(dtype, tuple(found), Counterpart(call.args[0], suffix, "tensor", options), of_any=True)


def unless_cast(above: ast.AST | None, result: Result) -> Result:
    """The same where another number of the list has put the conversion behind the call already."""
    form = result.form
    stands = form is not None and isinstance(above, ast.Attribute) and form.suffix == f".{above.attr}()"
    return replace(result, form=None) if stands and form is not None and not form.options else result


def _like_receiver(call: ast.Call) -> str | None:
    """The conversion of what becomes of `x.new_tensor(...)` to the dtype and device of `x`."""
    of = call.func.value if isinstance(call.func, ast.Attribute) else None
    return f".to({ast.unparse(of)})" if isinstance(of, (ast.Name, ast.Attribute)) else None


def gathered(read: ast.Subscript, dtype: Hashable) -> Result:
    """`tensor[numbers]`, a list of whole numbers some of which are tensors now: read through an index tensor."""
    text = "{of}[torch.tensor({numbers}, dtype=torch.long, device={of}.device)]"
    parts = (("of", read.value), ("numbers", read.slice))
    return Result(dtype, (), Counterpart(read, formula=text, parts=parts), of_any=True)


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


def copied(call: ast.Call, name: str, dtype: Hashable, *, only_read: bool, of_any: bool = False) -> Result | None:
    """`torch.tensor(number)`, `x.new_tensor(number)` of a number that is computed from tensors; `of_any`: sometimes."""
    options = {k.arg: k.value for k in call.keywords}
    if len(call.args) != 1 or set(options) - {"dtype"} or name not in _OF_ONE:
        return None
    number, cast = call.args[0], options.get("dtype")
    takes = "as_tensor" if of_any else ""
    if name == "torch.as_tensor" and cast is None and dtype in ("bool", "int64"):
        # of a tensor it is that tensor
        form = None if only_read else Counterpart(number, ".clone()", takes)
        return Result(dtype, (_DEVICE,), form, of_any=of_any)
    if name == "torch.Tensor.new_tensor" and cast is None:
        suffix = _like_receiver(call)
        form = Counterpart(number, f".clone(){suffix}", takes)
        return None if suffix is None else Result(dtype, (OVERFLOW,), form, of_any=of_any)
    if cast is not None:
        return Result(dtype, (_DEVICE, OVERFLOW), Counterpart(number, ".clone()", takes, cast=cast), of_any=of_any)
    kind = dtype_kind(dtype)
    found = [_DEVICE, *([] if kind in ("float", "int", "bool") else [_DTYPE])]
    form = Counterpart(number, ".clone()" + _CASTS.get(kind or "", ""), takes)
    return Result(dtype, tuple(found), form, of_any=of_any)


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


_DEVICE = Difference("exception", "a number out of a tensor on another device than the range raises")


def moved_range(call: ast.Call, node: ast.expr, dtype: Hashable, is_whole: Callable[[ast.expr], bool]) -> Result | None:
    """`torch.arange(s, s + n)` is `torch.arange(n) + s`, of a Python number n; None for other ranges."""
    options = {k.arg: k.value for k in call.keywords}
    if len(call.args) != 2 or set(options) - {"device"} or dtype_kind(dtype) != "int":
        return None
    match call.args:
        case [ast.Name(id=name), ast.BinOp(left=ast.Name(id=left), op=ast.Add(), right=length)] if left == name:
            pass
        case [ast.Name(id=name), ast.BinOp(left=length, op=ast.Add(), right=ast.Name(id=right))] if right == name:
            pass
        case _:
            return None
    if node not in call.args or not is_whole(length):
        return None
    device = ", device={device}" if "device" in options else ""
    text = f"(torch.arange({{length}}{device}) + {{start}})"
    parts = (("length", length), ("start", call.args[0]), *options.items())
    form = Counterpart(call, formula=text, parts=tuple((n or "", p) for n, p in parts))
    return Result("int64", (_DEVICE,), form)


def drawn_below(call: ast.Call, node: ast.expr, dtype: Hashable, is_whole: Callable[[ast.expr], bool]) -> Result | None:
    """`torch.randint(low, s, size)` is a part of the range from `low` to `s`, drawn with `torch.rand`."""
    options = {k.arg: k.value for k in call.keywords}
    *limits, size = call.args
    if len(limits) not in (1, 2) or node not in limits or set(options) - {"device"} or dtype_kind(dtype) != "int":
        return None
    low = limits[0] if len(limits) == 2 and constant(limits[0]) != 0 else None
    device = ", device={device}" if "device" in options else ""
    span = "{high}" if low is None else "({high} - {low})"
    text = f"(torch.rand({{size}}{device}) * {span}).long()"
    text = text if low is None else f"({text} + {{low}})"
    parts = (("size", size), ("high", limits[-1]), *((("low", low),) if low is not None else ()), *options.items())
    form = Counterpart(call, formula=text, parts=tuple((n or "", p) for n, p in parts))
    return Result("int64", (_OTHERS, _NO_RANGE), form)


_OTHERS = Difference("random", "other random numbers are drawn, from the same range")
_NO_RANGE = Difference("exception", "a range that holds no number raises no more")


def ranged(
    name: str, call: ast.Call, node: ast.expr, dtype: Hashable, is_whole: Callable[[ast.expr], bool]
) -> Result | None:
    """A call that a number is a limit of; None for others."""
    form = {"torch.arange": moved_range, "torch.randint": drawn_below}.get(name)
    return form(call, node, dtype, is_whole) if form is not None else None
