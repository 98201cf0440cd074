"""Which gradients a value carries, and what gradients see of a side that was not taken."""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Const, Scalar, Static, Tensor, Value, dtype_kind, tensor_in
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bindings
from graphmend.transforms.code.liveness import alive, locals_of, parameters
from graphmend.transforms.code.qualified_names import called, constant, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.operations import derivatives
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_NO_TENSORS = (ast.Constant, ast.Compare, ast.JoinedStr, ast.Lambda)
Paths = frozenset[str]
#: what names and places carry, by text
Flows = dict[str, Paths]
#: how a gradient of zero may come back from an expression: as zero for every input, for finite inputs, or not
Leak = Literal["never", "at infinity", "anywhere"]


@answers("gradients")
def recorded(facts: FunctionFacts, statement: ast.stmt) -> bool:
    """May gradients be recorded where a statement stands?"""
    return facts.gradients(statement) != "off"


#: what a tensor says of its history, and what torch says of the mode; NumPy takes no tensor that has a history
_HISTORY = frozenset("requires_grad grad_fn is_leaf retains_grad grad numpy is_inference".split())
_MODES = frozenset(f"torch.{name}" for name in ("is_grad_enabled", "is_inference_mode_enabled", "is_inference"))


@answers("gradients")
def told_by(facts: FunctionFacts, node: ast.expr) -> str | None:
    """The part of an expression that may tell whether gradients are recorded where it is evaluated: what asks for the
    history of a tensor or for the mode, and calls of code that is not torch's or Python's.
    """
    for inner in nodes_in(node):
        name = (qualified(facts, inner.func) or "") if isinstance(inner, ast.Call) else ""
        known = name.startswith(("torch.", "builtins.", "math.")) and name not in _MODES
        history = isinstance(inner, ast.Attribute) and inner.attr in _HISTORY
        if history or (isinstance(inner, ast.Call) and not known):
            return ast.unparse(inner)
    return None


@answers("gradients")
def lost(facts: FunctionFacts, statement: ast.stmt, what: str, *tensors: ast.expr) -> list[Difference]:
    """What a copy that a statement makes of existing `tensors`, told as `what`, loses: where nothing is recorded it has
    no history, and asks for no gradients.
    """
    if recorded(facts, statement) or (tensors and not any(carries(facts, t) for t in tensors)):
        return []
    return [Difference("gradients", f"under no_grad {what}")]


@answers("gradients")
def leak(facts: FunctionFacts, expression: ast.expr, protected: Container[ast.expr] = frozenset()) -> Leak:
    """Where a gradient of zero, sent into an expression whose side was not taken, may come out as NaN."""
    worst: Leak = "never"
    for node in nodes_in(expression):
        level: Leak = "never"
        if isinstance(node, ast.Call):
            last = (qualified(facts, node.func) or "").rpartition(".")[2]
            arguments = [*node.args, *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]
            if not any(tensor_in(facts.value(a)) for a in arguments) or last in known.LEAKLESS:
                continue
            level = "anywhere" if last in known.SINGULAR else "at infinity"
        elif isinstance(node, ast.BinOp) and _floating(facts, node):
            sides = [tensor_in(facts.value(o)) for o in (node.left, node.right)]
            if isinstance(node.op, (ast.Add, ast.Sub)) or not any(sides):
                continue
            if isinstance(node.op, (ast.Div, ast.Mod, ast.FloorDiv)):
                level = "anywhere" if sides[1] else "never" if _regular(facts, node.right) else "at infinity"
            elif isinstance(node.op, ast.Pow):
                level = "at infinity" if _small_power(node) else "anywhere"
            else:
                number = node.left if sides[1] else node.right
                level = "at infinity" if all(sides) or not _finite(facts, number) else "never"
        if level == "anywhere" and node in protected:
            level = "at infinity" if isinstance(node, ast.BinOp) else "never"
        if level == "anywhere" or worst == "never":
            worst = level
    return worst


def _floating(facts: FunctionFacts, node: ast.expr) -> bool:
    return _kind(facts, node) not in ("bool", "int")


def _kind(facts: FunctionFacts, node: ast.expr) -> str | None:
    value = facts.value(node)
    return dtype_kind(value.dtype) if isinstance(value, Tensor) else None


def _finite(facts: FunctionFacts, factor: ast.expr) -> bool:
    """Is a factor neither infinite nor NaN? A number of which nothing is known is taken for a usual one."""
    match factor:
        case ast.Call(args=[ast.Constant(value=str())]):  # float("inf")
            return not called(facts, factor, "builtins.float")
        case ast.UnaryOp(operand=operand):
            return _finite(facts, operand)
    if (qualified(facts, factor) or "").rpartition(".")[2] in ("inf", "nan"):  # those of math, NumPy and torch
        return False
    value = facts.value(factor)
    return not (isinstance(value, Const) and isinstance(value.value, float)) or math.isfinite(value.value)


def _regular(facts: FunctionFacts, divisor: ast.expr) -> bool:
    """Is a divisor known to be neither zero nor NaN?"""
    value = facts.value(divisor)
    return isinstance(value, Const) and isinstance(value.value, (int, float)) and abs(value.value) > 0


def _small_power(node: ast.BinOp) -> bool:
    power = constant(node.right)
    return isinstance(power, int) and power >= 1


@answers("gradients")
def carries(facts: FunctionFacts, node: ast.expr, bound: Flows | None = None) -> Paths:
    """The paths that gradients reach from a value; none where it never asks for gradients. `bound` says what the values
    of names carry, where that is known.
    """
    return _Carrying(facts, bound or {}).of(node)


def selected(one: Paths, other: Paths) -> Difference | None:
    """What gradients see where one of two values is selected by `torch.where`."""
    if one == other:
        return None
    if not one or not other:
        return Difference("gradients", "the result requires gradients also where the side without them is taken")
    return Difference(
        "zero-gradients", "inputs that only the side not taken uses get zeros for gradients instead of None"
    )


def begins_constant(facts: FunctionFacts, name: str) -> bool:
    """Is a name bound to what asks for no gradients, besides other things?"""
    made = bindings(facts).get(name, [])
    return any(b.value is not None and not b.part and not _Carrying(facts, {}).of(b.value) for b in made)


#: what `graphmend.runtime.select` selects with `mixed_grad`
EITHER_GRADIENT = Difference("gradients", "while compiled the result asks for gradients where either value does")


@answers("gradients")
def mixed(facts: FunctionFacts, one: Paths, other: Paths) -> bool:
    """May one of two values ask for gradients where the other does not: does one alone depend on anything, or on what
    is no local name, a parameter most likely, or is one of them a constant at first, to which others are added?
    """
    own = locals_of(facts.function)
    if one != other and any(begins_constant(facts, path) for path in one & other):
        return True
    if bool(one) != bool(other) or any(not path.isidentifier() or path not in own for path in one ^ other):
        return True
    return one != other and _always_of(facts, one) != _always_of(facts, other)


def _always_of(facts: FunctionFacts, paths: Paths, seen: Paths = frozenset()) -> Paths:
    """What is no local name, and values always depend on, whichever of the bindings of names are those that hold."""
    found = frozenset(path for path in paths if not path.isidentifier())
    for path in paths - found - seen - {*parameters(facts.function)}:
        made = [b.value for b in bindings(facts).get(path, [])]
        ways = [_Carrying(facts, {}).of(value) if value is not None else frozenset[str]() for value in made]
        always = [_always_of(facts, way, seen | {path}) for way in ways]
        found |= frozenset.intersection(*always) if always else frozenset()
    return found


@answers("gradients")
def gradient_differences(
    facts: FunctionFacts,
    statement: ast.stmt,
    sides: Sequence[Sequence[ast.expr]],
    protected: Collection[ast.expr] = frozenset(),
) -> list[Difference]:
    """What gradients see of a selection, for the expressions that each side evaluates."""
    if facts.gradients(statement) == "off":
        return []
    found: list[Difference] = []
    levels = {leak(facts, e, protected) for side in sides for e in side}
    if "anywhere" in levels:
        found.append(
            Difference("gradients", "gradients may become NaN where the derivative of the side not taken is not finite")
        )
    elif "at infinity" in levels:
        found.append(
            Difference("gradients", "gradients may become NaN where the side not taken holds infinite or NaN values")
        )
    found += (d for one, other in _pairs(facts, statement, sides) if (d := selected(one, other)) is not None)
    return list(dict.fromkeys(found))


def _pairs(
    facts: FunctionFacts, statement: ast.stmt, sides: Sequence[Sequence[ast.expr]]
) -> Iterator[tuple[Paths, Paths]]:
    """What the two values carry that are selected between: those of a name, or of an expression."""
    if isinstance(statement, ast.Match):
        values = [carries(facts, e) for side in sides for e in side]
        yield from itertools.pairwise(values)
    elif isinstance(statement, ast.If) and any(_stands_in(statement, e) for side in sides for e in side):
        inner = [n for s in (*statement.body, *statement.orelse) for n in nodes_in(s) if isinstance(n, ast.If)]
        for branch in (statement, *(n for n in inner if not isinstance(facts.value(n.test), Static))):
            yield from flow_pairs(facts, branch)
    elif len(sides) == 2 and all(sides):
        one, other = (frozenset[str]().union(*(carries(facts, e) for e in side)) for side in sides)
        yield one, other


@answers("gradients")
def flow_pairs(facts: FunctionFacts, statement: ast.If) -> Iterator[tuple[Paths, Paths]]:
    """What each name and place that a branch binds carries behind either side; where one side alone binds it, the
    value from before the branch is the other.
    """
    sides = [statement.body, statement.orelse]
    ends = [bool(side) and isinstance(side[-1], (ast.Return, ast.Raise)) for side in sides]
    if any(ends) and not all(ends):
        block = facts.body_of(statement)
        behind = block[block.index(statement) + 1 :]
        sides = [side if end else [*side, *behind] for side, end in zip(sides, ends, strict=True)]
    then, other = (flows(facts, side, {}) for side in sides)
    last = statement
    for name in {**then, **other}:
        incoming = name not in then or name not in other
        if name.startswith("<"):
            if not incoming:
                yield then[name], other[name]
        elif "." in name or "[" in name or all(ends) or any(ends) or alive(facts, name, last):
            before = facts.before(statement).get(name)
            if incoming and name.isidentifier() and before is None:
                continue
            own = _Carrying(facts, {}, statement).of_name(name, before)
            yield then.get(name, own), other.get(name, own)


def flows(facts: FunctionFacts, statements: Sequence[ast.stmt], bound: Flows) -> Flows:
    """What names, places and the returned value carry behind statements."""
    found = dict(bound)
    for statement in statements:
        _flow(facts, statement, found)
    return found


def _flow(facts: FunctionFacts, statement: ast.stmt, found: Flows) -> None:
    of = _Carrying(facts, found).of if facts.gradients(statement) != "off" else (lambda _: frozenset[str]())
    match statement:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                if (
                    isinstance(target, ast.Tuple)
                    and isinstance(value, ast.Tuple)
                    and len(target.elts) == len(value.elts)
                ):
                    found.update({ast.unparse(t): of(v) for t, v in zip(target.elts, value.elts, strict=True)})
                else:
                    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
                    found.update({ast.unparse(p): of(value) for p in parts})
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            found[ast.unparse(target)] = of(value)
        case ast.AugAssign(target=target, value=value):
            found[ast.unparse(target)] = of(_loaded(target)) | of(value)
        case ast.Return(value=ast.expr() as value):
            found["<return>"] = of(value)
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=receiver, attr=attr), args=args) as call) if (
            attr.endswith("_") and not attr.endswith("__")
        ):
            keywords = [k.value for k in call.keywords]
            own = frozenset({ast.unparse(receiver)}) if attr == "requires_grad_" else of(receiver)
            kept = frozenset[str]() if attr in ("detach_", "zero_", "copy_", "fill_") else own
            found[ast.unparse(receiver)] = kept.union(*(of(a) for a in (*args, *keywords)))
        case ast.Expr(value=ast.Call(args=args, keywords=keywords) as call):
            number = sum(key.startswith("<call") for key in found)
            given = [*args, *(k.value for k in keywords)]
            found[f"<call {number} {ast.unparse(call.func)}>"] = frozenset[str]().union(*(of(a) for a in given))
        case ast.If(body=body, orelse=orelse) | ast.For(body=body, orelse=orelse) | ast.While(body=body, orelse=orelse):
            one = flows(facts, body, found)
            two = flows(facts, orelse, found)
            for name in {**one, **two}:
                own = _Carrying(facts, found).of_name(name, None)
                found[name] = one.get(name, own) | two.get(name, own)
        case ast.With(body=body):
            found.update(flows(facts, body, found))


def _loaded(target: ast.expr) -> ast.expr:
    return ast.Name(target.id, ast.Load()) if isinstance(target, ast.Name) else target


def _stands_in(statement: ast.If, node: ast.expr) -> bool:
    return any(n is node for s in (*statement.body, *statement.orelse) for n in nodes_in(s))


class _Carrying:
    """One question, which follows names that never carry anything through their bindings."""

    def __init__(self, facts: FunctionFacts, bound: Flows, before: ast.stmt | None = None) -> None:
        self.facts, self.bound = facts, bound
        looped = before is not None and any(isinstance(a, (ast.For, ast.While)) for a in facts.ancestors(before))
        self._line = before.lineno if before is not None and not looped else None
        self._seen: set[str] = set()

    def of(self, node: ast.expr) -> Paths:
        value = self.facts.value(node)
        if isinstance(value, (Static, Scalar)) or isinstance(
            node, (ast.Constant, ast.Compare, ast.JoinedStr, ast.Lambda)
        ):
            return frozenset()
        if isinstance(value, Tensor) and dtype_kind(value.dtype) in ("bool", "int"):
            return frozenset()
        match node:
            case ast.Name(id=name):
                return self.of_name(name, value)
            case ast.Attribute(value=base, attr=attr):
                if isinstance(self.facts.value(base), Tensor):
                    return frozenset() if attr in derivatives.CUT_ATTRIBUTES else self.of(base)
                return self.bound.get(ast.unparse(node), frozenset({ast.unparse(node)}))
            case ast.Subscript(value=base):
                text = ast.unparse(node)
                if text in self.bound:
                    return self.bound[text]
                inner = self.of(base)
                return inner if isinstance(self.facts.value(base), Tensor) or not inner else inner | {text}
            case ast.UnaryOp(op=ast.Not() | ast.Invert()):
                return frozenset()
            case ast.Call():
                return self._call(node)
        return self._all(n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr))

    def of_name(self, name: str, value: Value | None) -> Paths:
        if name in self.bound:
            return self.bound[name]
        if isinstance(value, (Static, Scalar)) or name in self.facts.names:
            return frozenset()
        if isinstance(value, Tensor) and dtype_kind(value.dtype) in ("bool", "int"):
            return frozenset()
        made = [
            b
            for b in bindings(self.facts).get(name, [])
            if self._line is None or b.value is None or b.value.lineno < self._line
        ]
        if not made or name in parameters(self.facts.function) or name in self._seen:
            return frozenset({name})
        self._seen.add(name)
        cut = all(b.value is not None and not self._of_binding(b.value) for b in made)
        return frozenset() if cut else frozenset({name})

    def _of_binding(self, value: ast.expr) -> Paths:
        """What a name was bound to elsewhere carries, with the names that mean what they did there."""
        before = _Carrying(self.facts, {})
        before._seen = self._seen
        return before.of(value)

    def _call(self, node: ast.Call) -> Paths:
        given = [*node.args, *(k.value for k in node.keywords)]
        if any(k.arg == "requires_grad" and constant(k.value) is not False for k in node.keywords):
            return frozenset({ast.unparse(node)})
        value = self.facts.value(node.func)
        if isinstance(value, ExternalInstance) and value.cls.startswith("torch.nn."):
            plain = value.cls.rpartition(".")[2] in derivatives.PLAIN_LAYERS
            return self._all(given) | (frozenset() if plain else _own(node.func))
        name = qualified(self.facts, node.func) or ""
        folder, _, last = name.rpartition(".")
        if folder in known.FUNCTIONAL:
            own = [node.func.value] if folder == "torch.Tensor" and isinstance(node.func, ast.Attribute) else []
            return frozenset() if last in derivatives.CUT else self._all([*own, *given])
        if folder in ("builtins", "math"):
            return self._all(given)
        own = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        return self._all([*own, *given]) | _own(node.func)

    def _all(self, nodes: Iterable[ast.expr]) -> Paths:
        return frozenset[str]().union(*(self.of(n) for n in nodes))


def _own(called: ast.expr) -> Paths:
    """The path to what a layer or a function holds itself, its parameters most likely."""
    return frozenset({f"{ast.unparse(called)}.parameters()"})
