"""Transfer functions of callables outside torch, NumPy and the builtins: mostly of the standard library."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.interpreter.operations import own_objects
from graphmend.analysis.lattice.arguments import Arguments, Keywords
from graphmend.analysis.lattice.evidence import Evidence
from graphmend.analysis.lattice.external import ExternalInstance, ExternalName, Intrinsic
from graphmend.analysis.lattice.values import STATIC, UNKNOWN, Container, Scalar, Static, Value
from graphmend.analysis.program.entities import Record
from graphmend.analysis.tensors.equations import einops_call
from graphmend.analysis.tensors.operations import any_of

if TYPE_CHECKING:
    from graphmend.analysis.interpreter.interface import Walk


_PURE = frozenset(
    "math os operator itertools functools collections inspect types typing re string copy platform sys enum "
    "dataclasses packaging importlib struct textwrap abc numbers pathlib warnings".split()
)


#: classes that are not written with a capital
#: written in C, and ask their arguments' classes for a method
_OF_C = frozenset({"math.floor", "math.ceil", "math.trunc", "operator.length_hint"})
_CLASSES = frozenset(
    {"array.array", "datetime.date", "datetime.datetime", "datetime.time", "datetime.timedelta", "collections.deque"}
)


#: what functions of `math` give that is no float
_OF_MATH = {
    **dict.fromkeys("ceil comb factorial floor gcd isqrt lcm perm trunc".split(), Static("int")),
    **dict.fromkeys("isclose isfinite isinf isnan".split(), Static("bool")),
    **dict.fromkeys("frexp modf prod sumprod".split(), STATIC),
}


def library(w: Walk, name: str, receiver: Value | None, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    """The value of a call of a callable outside torch, NumPy and the builtins."""
    if name == "functools.partial" and args:
        return _partial(args, keywords)
    if name == "dataclasses.replace" and args and isinstance(args[0], Record):
        return args[0].with_parts(args[0].items, args[0].of, {**(args[0].fields or {}), **keywords})
    if name in ("copy.copy", "copy.deepcopy", "typing.cast", "functools.wraps"):
        return args[-1] if args else UNKNOWN
    if w.session.torch.unknown_number(name.replace("random.Random.", "random.")):
        origin = Evidence("is drawn while the program runs: a symbol of the graph", node)
        return Scalar(origin, "float" if name.endswith("uniform") else "int", symbolic=True)
    if name == "re.compile":
        return ExternalInstance("re.Pattern")
    if name == "types.MappingProxyType" and args and _keyed_by_objects(args[0]):
        return ExternalInstance("a mapping proxy with objects as keys")
    if name == "logging.getLogger":
        return ExternalInstance("logging.Logger")
    if name == "contextlib.nullcontext":
        return ExternalInstance(name)
    if name.startswith("math.") and any_of(args) is not None:
        tensor = any_of(args)
        return Scalar(
            Evidence("takes a Python value out of a Tensor", node, tensor.origin if tensor else None), "float"
        )
    if name in _OF_C:
        own_objects.given(w, node, name, args)
    if name == "operator.index" and any_of(args) is not None:
        return Scalar(None, "int")
    last = name.rpartition(".")[2]
    if name.startswith("einops.") and last.islower() and last != "parse_shape":
        return einops_call(last, args, keywords, node)
    if last[:1].isupper() or name in _CLASSES:
        return ExternalInstance(name, made_inside=w.session.stack.traced)
    if name.partition(".")[0] in _PURE and all(
        isinstance(a, (Static, ExternalName)) for a in (*args, *keywords.values())
    ):
        return _OF_MATH.get(last, Static("float")) if name.startswith("math.") else STATIC
    return UNKNOWN


def _keyed_by_objects(value: Value) -> bool:
    """Whether a dictionary is written with keys that are no constants."""
    return isinstance(value, Container) and value.kind == "dict" and not value.fields and value.of is not None


def _partial(args: Arguments, keywords: Keywords) -> Value:
    function, *first = args

    def call(w: Walk, more: Arguments, late: Keywords, node: ast.AST) -> Value:
        return w.apply(function, (*first, *more), {**keywords, **late}, node)

    return Intrinsic("functools.partial", call, (*first, *keywords.values()))
