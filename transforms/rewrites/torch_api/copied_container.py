"""Copy the tensors in a container one by one instead of the container with `copy.deepcopy`.

Before:
    imagined = copy.deepcopy(state)

After:
    imagined = {key: value.detach().clone() for key, value in state.items()}

Legal when:
    what is copied is a list, a tuple or a dict whose values, or theirs, are tensors, and beside them numbers, texts and
    None; no two of the tensors are known to share memory.

Differs in:
    as for a tensor: a copy does not ask for gradients, is a plain tensor without gaps in its memory, and a computed
    tensor raises no more. Where a container from elsewhere holds a tensor twice, or two that share memory, the copies
    are apart. A subclass of a list or a dictionary gives a plain one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Const, Container, Static, Tensor, Value, options
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bindings
from graphmend.transforms.code.expression_text import Code, bracketed, shortened
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import fresh, reads, stored
from graphmend.transforms.code.qualified_names import called
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.memory import known_to_share, shares
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "copied_container"
_GRADIENTS = "a copy does not ask for gradients itself, and a copy of a computed tensor raises no more"
_FEW = 4
"""How many items of several kinds are written one by one."""
_DIFFERENCES = (
    Difference("gradients", _GRADIENTS),
    Difference("exception", _GRADIENTS),
    Difference("type", "a parameter, or a tensor with attributes of its own, gives a plain tensor"),
    Difference("type", "an ordered dictionary, or what else is made of a list or a dictionary, gives a plain one"),
    Difference("strides", "a tensor with gaps in its memory, or in no order, gives one without"),
    Difference("aliasing", "tensors in it that share memory, or are one, do not share it in the copy"),
)


@asks("memory", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    node = facts.node.value if isinstance(facts.node, ast.Expr) else facts.node
    call = called(facts, node, "copy.deepcopy") if isinstance(node, ast.expr) else None
    if call is None or len(call.args) != 1 or call.keywords:
        return None
    value = facts.value(call.args[0])
    if not isinstance(value, Container):
        return None
    if (shared := _shared(facts, call.args[0])) is not None:
        return refuse(NAME, f"`{shortened(shared)}` stands in it twice, or shares its memory with what does")
    imports = Imports(facts)
    try:
        text = _Copies(facts, imports).of(value, Code(facts.source).operand(call.args[0]))
    except _UnknownError as error:
        return refuse(NAME, f"`{shortened(call.args[0])}` {error}")

    def make() -> list[TextEdit]:
        return [*imports.edits(), replace_expression(facts.source, call, text)]

    return offer(NAME, "copy the tensors one by one", facts, make, _DIFFERENCES)


def _shared(facts: FunctionFacts, node: ast.expr) -> ast.expr | None:
    """A tensor whose memory another one in a container is known to share: they would be apart in the copy."""
    names = _names(facts, node.id) if isinstance(node, ast.Name) else set()
    held = [*_leaves(facts, node)]
    for name in names:
        for bound in bindings(facts).get(name, []):
            held += _leaves(facts, bound.value) if bound.value is not None and not bound.part else ()
    for inner in nodes_in(facts.function):
        given: list[ast.expr] = []
        match inner:
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=own))], value=value) if own in names:
                given = [value]
            case ast.Call(func=ast.Attribute(value=ast.Name(id=own)), args=args, keywords=keywords) if own in names:
                given = [*args, *(k.value for k in keywords)]
        loops = [a for a in facts.ancestors(inner) if isinstance(a, (ast.For, ast.While))] if given else []
        for leaf in (leaf for one in given for leaf in _leaves(facts, one)):
            again = bool(loops) and not reads(leaf) & stored(loops[:1]) and not shares(facts, leaf).fresh
            held += [leaf, leaf] if again else [leaf]
    pairs = combinations(held, 2)
    return next((other for one, other in pairs if known_to_share(facts, one, other)), None)


def _names(facts: FunctionFacts, name: str) -> set[str]:
    """The names that a container has in the function."""
    pairs = [
        {target.id, value.id}
        for node in nodes_in(facts.function)
        if isinstance(node, ast.Assign) and isinstance(value := node.value, ast.Name)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    found, before = {name}, 0
    while len(found) > before:
        before = len(found)
        found |= {n for pair in pairs if pair & found for n in pair}
    return found


def _leaves(facts: FunctionFacts, node: ast.expr) -> Iterator[ast.expr]:
    """The tensors of which displays are made; those that stand in several places, twice."""
    match node:
        case ast.Dict(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts):
            for part in parts:
                yield from _leaves(facts, part)
        case ast.ListComp(elt=part) | ast.DictComp(value=part) if not shares(facts, part).fresh:
            yield from (part, part)
        case ast.BinOp(left=left, op=ast.Mult(), right=right) if isinstance(facts.value(node), Container):
            parts = [*_leaves(facts, left), *_leaves(facts, right)]
            yield from (*parts, *parts)
        case _ if any(isinstance(o, Tensor) for o in options(facts.value(node))):
            yield node


class _UnknownError(Exception):
    """What a container holds is not known, or is no data; the message goes on from its name."""


class _Copies:
    """Writes copies of values by what is known of them."""

    def __init__(self, facts: FunctionFacts, imports: Imports) -> None:
        self._facts, self._imports = facts, imports
        self._names: list[str] = []

    def of(self, value: Value, text: str) -> str:
        match value:
            case Tensor() if not value.ndarray:
                return f"{text}.detach().clone()"
            case Static() if _is_lasting(value):
                return text
            case Container(kind="list" | "tuple" | "dict" as kind) if type(value) is Container:
                return self._container(value, kind, text)
        found = options(value)
        if any(isinstance(o, Tensor) for o in found) and all(_is_lasting(o) or isinstance(o, Tensor) for o in found):
            tensor = self._imports.name("torch.Tensor")
            return f"{text}.detach().clone() if isinstance({text}, {tensor}) else {text}"
        raise _UnknownError("is not known to hold tensors and numbers alone")

    def _container(self, value: Container, kind: str, text: str) -> str:
        if kind == "dict":
            key, name = self._name("key"), self._name("value")
            return f"{{{key}: {self.of(value.element, name)} for {key}, {name} in {bracketed(text)}.items()}}"
        kinds = {type(item) for item in value.items or ()}
        if value.items is not None and len(kinds) > 1 and len(value.items) <= _FEW:
            parts = [self.of(item, f"{bracketed(text)}[{place}]") for place, item in enumerate(value.items)]
            return f"({', '.join(parts)},)" if kind == "tuple" else f"[{', '.join(parts)}]"
        name = self._name("value")
        copies = f"[{self.of(value.element, name)} for {name} in {text}]"
        return f"tuple({copies})" if kind == "tuple" else copies

    def _name(self, wanted: str) -> str:
        self._names.append(fresh(self._facts, wanted, self._names))
        return self._names[-1]


def _is_lasting(value: Value) -> bool:
    """Is it a number, a text or None, of which a copy is the thing itself?"""
    if isinstance(value, Const):
        return isinstance(value.value, (bool, int, float, str, bytes, type(None)))
    return isinstance(value, Static) and value.type in ("bool", "int", "float", "str", "NoneType")
