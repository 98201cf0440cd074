"""Transfer functions of higher-order functions and of those that pass elements on: `map`, `filter`, `functools.reduce`,
`itertools`, and `operator`'s functions for operators."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from graphmend.analysis.interpreter.events import Branch, Contains
from graphmend.analysis.interpreter.operations.attributes import attribute
from graphmend.analysis.interpreter.operations.operators import binary, compared
from graphmend.analysis.interpreter.operations.subscripts import element_of, elements_of, item
from graphmend.analysis.lattice.arguments import Arguments, Keywords
from graphmend.analysis.lattice.external import Intrinsic
from graphmend.analysis.lattice.values import (
    BOOL,
    INT,
    NONE,
    STATIC,
    UNKNOWN,
    Const,
    Container,
    Value,
    join,
    join_all,
    tensor_in,
)

if TYPE_CHECKING:
    from graphmend.analysis.interpreter.interface import Walk

_Function = Callable[["Walk", Arguments, Keywords, ast.AST], Value]


def _apply(w: Walk, function: Value, args: Arguments, node: ast.AST) -> Value:
    return w.apply(function, args, {}, node)


#: functions that ask what a function they are given says of each element, and where the two stand
_ASKING = {
    "builtins.filter": (0, 1), "itertools.filterfalse": (0, 1), "itertools.takewhile": (0, 1),
    "itertools.dropwhile": (0, 1),
}  # fmt: skip
_KEYED = frozenset({"builtins.sorted", "builtins.max", "builtins.min", "itertools.groupby"})


def predicate_result(w: Walk, name: str, args: Arguments, keywords: Keywords, node: ast.AST) -> Value | None:
    """The result of the predicate or key function of a call for one element; None where the call has none."""
    if name in _ASKING and len(args) == 2:
        asks, over = (args[i] for i in _ASKING[name])
        element = element_of(w, over, node)
        return element if asks is NONE else _apply(w, asks, (element,), node)
    if name in _KEYED and args and "key" in keywords and keywords["key"] is not NONE:
        element = element_of(w, args[0], node) if len(args) == 1 else join_all(args)
        return _apply(w, keywords["key"], (element,), node)
    return None


def _sequence(of: Callable[[Walk, Arguments, ast.AST], Value]) -> _Function:
    """Makes the transfer function of a callable that returns an iterator; `of` gives its element."""
    return lambda w, args, keywords, node: Container("generator", of=of(w, args, node)) if args else UNKNOWN


def _map(w: Walk, args: Arguments, node: ast.AST) -> Value:
    return _apply(w, args[0], tuple(element_of(w, a, node) for a in args[1:]), node) if len(args) > 1 else UNKNOWN


def _starmap(w: Walk, args: Arguments, node: ast.AST) -> Value:
    row = element_of(w, args[1], node) if len(args) > 1 else UNKNOWN
    items = row.items if isinstance(row, Container) else None
    return _apply(w, args[0], items if items is not None else (UNKNOWN,), node)


def _second(w: Walk, args: Arguments, node: ast.AST) -> Value:
    return element_of(w, args[1], node) if len(args) > 1 else UNKNOWN


def _first(w: Walk, args: Arguments, node: ast.AST) -> Value:
    return element_of(w, args[0], node)


def _any_of_them(w: Walk, args: Arguments, node: ast.AST) -> Value:
    return join_all(element_of(w, a, node) for a in args)


def _rows(w: Walk, args: Arguments, node: ast.AST) -> Value:
    return Container("tuple", tuple(element_of(w, a, node) for a in args))


def _inner(w: Walk, args: Arguments, node: ast.AST) -> Value:
    return element_of(w, element_of(w, args[0], node), node)


def _pairs(w: Walk, args: Arguments, node: ast.AST) -> Value:
    return Container("tuple", (element_of(w, args[0], node),) * 2)


def _tuples(w: Walk, args: Arguments, node: ast.AST) -> Value:
    """`combinations(xs, r)`."""
    width = args[1].value if len(args) > 1 and isinstance(args[1], Const) else None
    one = element_of(w, args[0], node)
    if isinstance(width, int) and 0 < width < 9:
        return Container("tuple", (one,) * width)
    return Container("tuple", of=one)


def _groups(w: Walk, args: Arguments, node: ast.AST) -> Value:
    return Container("tuple", (STATIC, Container("generator", of=element_of(w, args[0], node))))


def _accumulated(w: Walk, args: Arguments, node: ast.AST) -> Value:
    one = element_of(w, args[0], node)
    return join(one, _apply(w, args[1], (one, one), node)) if len(args) > 1 else one


def _zip_longest(w: Walk, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    fill = keywords.get("fillvalue", NONE)
    return Container("generator", of=Container("tuple", tuple(join(one, fill) for one in elements_of(w, args, node))))


def mapped_tree(w: Walk, function: Value, tree: Value, node: ast.AST) -> Value:
    """`tree_map(f, tree)`: the same tree, with `f` applied to each leaf."""
    if not isinstance(tree, Container):
        return _apply(w, function, (tree,), node)
    items = None if tree.items is None else tuple(mapped_tree(w, function, v, node) for v in tree.items)
    of = None if tree.of is None else mapped_tree(w, function, tree.of, node)
    fields = None if tree.fields is None else {k: mapped_tree(w, function, v, node) for k, v in tree.fields.items()}
    return tree.with_parts(items, of, fields)


def _repeat(w: Walk, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    return Container("generator", of=args[0] if args else UNKNOWN)


def _count(w: Walk, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    return Container("generator", of=INT if not args else UNKNOWN)


def _tee(w: Walk, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    return Container("tuple", of=Container("generator", of=element_of(w, args[0], node) if args else UNKNOWN))


def _reduce(w: Walk, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    """`functools.reduce(f, xs)`: the result of `f`, joined with the first element where that may be the only one."""
    if len(args) < 2:
        return UNKNOWN
    element = element_of(w, args[1], node)
    start = args[2] if len(args) > 2 else element
    made = _apply(w, args[0], (start, element), node)
    return join(start, made) if not (isinstance(args[1], Container) and args[1].items) else made


def _functional_call(w: Walk, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    """`torch.func.functional_call(module, parameters, args)`: a call of the module."""
    given = args[2] if len(args) > 2 else keywords.get("args", UNKNOWN)
    passed = given.items if isinstance(given, Container) and given.items is not None else (given,)
    return w.apply(args[0], passed, {}, node) if args else UNKNOWN


_FUNCTIONS: dict[str, _Function] = {
    "builtins.map": _sequence(_map),
    "builtins.filter": _sequence(_second),
    "functools.reduce": _reduce,
    "itertools.accumulate": _sequence(_accumulated),
    "itertools.chain": _sequence(_any_of_them),
    "itertools.chain.from_iterable": _sequence(_inner),
    "itertools.combinations": _sequence(_tuples),
    "itertools.combinations_with_replacement": _sequence(_tuples),
    "itertools.compress": _sequence(_first),
    "itertools.count": _count,
    "itertools.cycle": _sequence(_first),
    "itertools.dropwhile": _sequence(_second),
    "itertools.filterfalse": _sequence(_second),
    "itertools.groupby": _sequence(_groups),
    "itertools.islice": _sequence(_first),
    "itertools.pairwise": _sequence(_pairs),
    "itertools.permutations": _sequence(_tuples),
    "itertools.product": _sequence(_rows),
    "itertools.repeat": _repeat,
    "itertools.starmap": _sequence(_starmap),
    "itertools.takewhile": _sequence(_second),
    "itertools.tee": _tee,
    "itertools.zip_longest": _zip_longest,
    "torch.func.functional_call": _functional_call,
    "torch.nn.utils.stateless.functional_call": _functional_call,
}

_BINARY: dict[str, ast.operator] = {
    "add": ast.Add(), "sub": ast.Sub(), "mul": ast.Mult(), "truediv": ast.Div(), "floordiv": ast.FloorDiv(),
    "mod": ast.Mod(), "pow": ast.Pow(), "matmul": ast.MatMult(), "and_": ast.BitAnd(), "or_": ast.BitOr(),
    "xor": ast.BitXor(), "lshift": ast.LShift(), "rshift": ast.RShift(), "concat": ast.Add(),
}  # fmt: skip
_COMPARES: dict[str, ast.cmpop] = {
    "eq": ast.Eq(), "ne": ast.NotEq(), "lt": ast.Lt(), "le": ast.LtE(), "gt": ast.Gt(), "ge": ast.GtE(),
}  # fmt: skip

_OTHERS = "neg truth not_ contains getitem is_ is_not itemgetter attrgetter methodcaller".split()
#: what this is about; every other callable is none of it
KNOWN = frozenset(_FUNCTIONS) | _KEYED | frozenset(f"operator.{n}" for n in (*_BINARY, *_COMPARES, *_OTHERS))


def function(w: Walk, name: str, args: Arguments, keywords: Keywords, node: ast.AST) -> Value | None:
    """The value of a call of one of these functions; None for any other callable."""
    if name.startswith("operator."):
        return _operator(w, name[9:], args, node)
    known = _FUNCTIONS.get(name)
    return known(w, args, keywords, node) if known is not None else None


def _operator(w: Walk, name: str, args: Arguments, node: ast.AST) -> Value | None:
    """A function of `operator`."""
    if name in ("itemgetter", "attrgetter", "methodcaller"):
        return _getter(name, args) if len(args) == 1 and isinstance(args[0], Const) else UNKNOWN
    if name in ("truth", "not_") and args:
        if tensor_in(args[0]) is not None and isinstance(node, ast.expr):
            w.emit(Branch, node, args[0], "not")
        return BOOL
    if name == "neg" and args and tensor_in(args[0]) is not None:
        return _apply(w, attribute(w, args[0], "neg", node), (), node)
    if len(args) != 2:
        return None
    left, right = args
    if name in _BINARY and isinstance(node, ast.expr):
        return binary(w, node, _BINARY[name], left, right)
    if name in _COMPARES and isinstance(node, ast.expr):
        return compared(w, node, _COMPARES[name], left, right)
    if name == "contains" and isinstance(node, ast.expr):
        w.emit(Contains, node, right, left)
        return BOOL
    return item(w, left, right, node) if name == "getitem" else BOOL if name in ("is_", "is_not") else None


def _getter(name: str, args: Arguments) -> Value:
    """`operator.attrgetter("shape")` and the like."""
    (what,) = args
    assert isinstance(what, Const)

    def call(w: Walk, late: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        if not late:
            return UNKNOWN
        if name == "itemgetter":
            return item(w, late[0], what, node)
        value = late[0]
        for part in str(what.value).split("."):
            value = attribute(w, value, part, node)
        return value if name == "attrgetter" else _apply(w, value, (), node)

    return Intrinsic(f"operator.{name}", call)
