"""Reduce all elements under a mask instead of those that a mask picks out.

Before:
    total = (x[x > 0] ** 2).sum()

After:
    total = torch.where(x > 0, x ** 2, 0).sum()

Legal when:
    the mask is a bool tensor over the leading dimensions of what it picks from; the picked elements go through
    nothing but elementwise arithmetic, with numbers, 0-d tensors and elements picked by the same mask, before a
    reduction that has a value at which an element does not count: a sum, mean, product, norm, minimum, maximum,
    `any`, `all`, or a loss. A reduction inside of that is mended first.

Differs in:
    sums and products of floating numbers may round differently. A minimum or maximum of nothing gives the least or
    greatest value instead of an exception. A mask of another shape, and a mean of whole numbers, raise no more, unless
    shapes and dtypes are known.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor, dtype_kind
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import reads, stored
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.code.text_edits import deletion, replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.context import observed
from graphmend.transforms.legality.gradients import leak, recorded
from graphmend.transforms.legality.memory import changed_in_place
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.rows.masked_elements import (
    WORKS,
    Picked,
    aligned,
    missing_dimensions,
    one_by_one,
    other_shape,
    picked,
    same_dtype,
    unlike,
)
from graphmend.transforms.legality.speculation import repeatable, speculate
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "masked_reduce"
_TITLE = "reduce all elements under the mask"

_REDUCTIONS = ("sum", "mean", "prod", "norm", "max", "min", "amax", "amin", "any", "all")
#: losses that are the mean of an elementwise one
_LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
#: they have no finite derivative at 1, which stands in for elements that do not count
_SINGULAR_AT_ONE = frozenset("acos asin atanh acosh logit erfinv".split())


class NotReducibleError(Exception):
    """The picked elements are used otherwise; the message says how."""


@dataclass
class _Reduction:
    """A reduction of picked elements: the call as a whole, what is reduced, and how."""

    whole: ast.expr
    body: ast.expr
    how: str
    rows: bool = False
    """Only the picked dimension is reduced."""


@asks("effects", "totality", "memory", "domain", "dtypes", "shapes", "gradients", "context", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    found = picked(facts, facts.node)
    if found is None or not isinstance(facts.node, ast.expr) or _stored_to(facts, facts.node):
        return None
    try:
        name = _bound_to(facts, facts.node)
        if name is None:
            return _offer(facts, found, [facts.node], [])
        return _offer(facts, found, _loads(facts, found, name), [facts.statement])
    except NotReducibleError as error:
        return refuse(NAME, str(error))


def _offer(facts: FunctionFacts, found: Picked, uses: list[ast.expr], dropped: list[ast.stmt]) -> Fix | Refusal:
    imports = Imports(facts)
    inner: dict[ast.expr, str] = {}
    differences: list[Difference] = []
    reductions: list[_Reduction] = []
    waiting = list(uses)
    while waiting:  # those inside of others first
        ready, failed = [], NotReducibleError("")
        for use in waiting:
            try:
                ready.append((use, _reduction(facts, found, use, {*uses}, inner)))
            except NotReducibleError as error:
                failed = error
        if not ready:
            raise failed
        for use, reduction in ready:
            elements = _Elements(facts, found, {*uses}, inner)
            if reduction.whole not in inner:
                inner[reduction.whole] = elements.reduced(reduction, imports)
                reductions.append(reduction)
                differences += elements.differences
            waiting.remove(use)
    if dropped and not replaceable(facts, dropped):
        return refuse(NAME, "the statement shares its line with another one")
    if observed(facts, facts.statement) and any(d.kind == "exception" for d in differences):
        return refuse(NAME, "a `try` sees the exceptions of the reduction")
    outermost = [
        r.whole for r in reductions if not any(r.whole is not o.whole and _inside(r.whole, o.whole) for o in reductions)
    ]

    def make() -> list[TextEdit]:
        edits = [replace_expression(facts.source, whole, inner[whole]) for whole in outermost]
        return [*imports.edits(), *edits, *(deletion(facts, statement) for statement in dropped)]

    return offer(NAME, _TITLE, facts, make, differences)


def _inside(node: ast.expr, outer: ast.expr) -> bool:
    return any(n is node for n in ast.walk(outer))


class _Elements:
    """Elements that one mask picks, and expressions of them."""

    def __init__(
        self, facts: FunctionFacts, found: Picked, nodes: set[ast.expr], inner: Mapping[ast.expr, str]
    ) -> None:
        self.facts, self.found, self.nodes, self.inner = facts, found, nodes, inner
        self.differences: list[Difference] = []

    def reduced(self, reduction: _Reduction, imports: Imports) -> str:
        """The reduction's new text."""
        facts, code = self.facts, Code(self.facts.source)
        where, mask = imports.name("torch.where"), aligned(facts, self.found)
        plain = reduction.body in self.nodes
        self._check_again(reduction)
        picks = self._picks(reduction.body)
        for tensor in picks.values():
            self.differences += other_shape(facts, Picked(tensor, self.found.mask))
            self.differences += unlike(facts, tensor, self.found.tensor)
        found = speculate(facts, *([] if plain else [reduction.body]))
        if found.blockers:
            raise NotReducibleError(found.blockers[0])
        fills = not plain and (reduction.how in _LOSSES or leak(facts, reduction.body) != "never")
        if fills and _names_in(facts, reduction.body) & _SINGULAR_AT_ONE:
            raise NotReducibleError(f"`{ast.unparse(reduction.body)}` has no derivative at 1")
        tensors: dict[ast.expr, str] = {
            n: f"{where}({mask}, {code.argument(t)}, 1)" if fills else code.operand(t) for n, t in picks.items()
        }
        tensors |= self.inner
        if reduction.how in _LOSSES:
            assert isinstance(reduction.body, ast.Call)
            loss = f'{code.text(reduction.body, tensors)[:-1].rstrip().rstrip(",")}, reduction="none")'
            first = facts.value(reduction.body.args[0])
            self._rounds()
            full = self._mean_of(first.dtype if isinstance(first, Tensor) else None)
            if full:
                return f"({where}({mask}, {loss}, 0).sum() / {self._count()})"
            over, dtype = self._wide(imports, reduction.body.args[0])
            return f"({where}({mask}, {loss}, 0).sum({over}) / {self._count()}).to({dtype})"
        text = code.argument(reduction.body, tensors)
        return self._text(reduction, imports, mask, text)

    def _picks(self, body: ast.expr) -> dict[ast.expr, ast.expr]:
        """The tensors that picks stand for, but for those inside of reductions."""
        found: dict[ast.expr, ast.expr] = {}
        rest: list[ast.AST] = [body]
        while rest:
            node = rest.pop()
            if isinstance(node, ast.expr) and node in self.inner:
                continue
            if isinstance(node, ast.expr) and (pick := _same(self.facts, self, node)):
                found[node] = pick.tensor
            else:
                rest += ast.iter_child_nodes(node)
        return found

    def _rounds(self) -> None:
        self.differences.append(Difference("rounding", "sums may round differently, as they are made in another order"))

    def _mean_of(self, dtype: Hashable) -> bool:
        """Is a mean of a dtype computed in it? One of half precision is not: its sum may be too large."""
        kind = dtype_kind(dtype)
        if kind in ("int", "bool"):
            raise NotReducibleError("a mean of whole numbers raises")
        if kind is None:
            self.differences.append(Difference("exception", "a mean of whole numbers no longer raises"))
        return dtype in ("float32", "float64")

    def _check_again(self, reduction: _Reduction) -> None:
        """The new text evaluates the tensor and the mask at other places, and some more than once."""
        for part in (self.found.tensor, self.found.mask):
            if not repeatable(self.facts, part):
                raise NotReducibleError(f"`{ast.unparse(part)}` would be evaluated more than once")
        if reduction.how in ("any", "all"):
            kept = self.found.tensor if reduction.body in self.nodes else reduction.body
            value = self.facts.value(kept)
            if not (isinstance(value, Tensor) and value.dtype == "bool"):
                raise NotReducibleError(f"`{ast.unparse(kept)}` is not known to be of dtype bool")

    def _text(self, reduction: _Reduction, imports: Imports, mask: str, text: str) -> str:
        how, code = reduction.how, Code(self.facts.source)
        where = imports.name("torch.where")
        operand = text if text.isidentifier() else f"({text})"
        dim = "0" if reduction.rows else ""
        if how in ("any", "all"):
            joined = f"{operand} & {mask}" if how == "any" else f"{operand} | ~{_operand(mask)}"
            return f"({joined}).{how}({dim})"
        value = self.facts.value(reduction.body)
        dtype = value.dtype if isinstance(value, Tensor) else None
        if dtype_kind(dtype) not in ("int", "bool") and how in ("sum", "mean", "prod", "norm"):
            self._rounds()
        if how == "sum":
            return f"{where}({mask}, {text}, 0).sum({dim})"
        if how == "mean":
            count = f"{code.operand(self.found.mask)}.sum()" if reduction.rows else self._count()
            if self._mean_of(dtype):
                return f"({where}({mask}, {text}, 0).sum({dim}) / {count})"
            if reduction.body in self.nodes or same_dtype(self.facts, reduction.body, self.found.tensor):
                over, wide = self._wide(imports, self.found.tensor)
                over = f"{dim}, {over}" if dim else over
                return f"({where}({mask}, {text}, 0).sum({over}) / {count}).to({wide})"
            self.differences.append(
                Difference("rounding", "a sum of half precision may be infinite where its mean is not")
            )
            return f"({where}({mask}, {text}, 0).sum({dim}) / {count})"
        if how == "prod":
            return f"{where}({mask}, {text}, 1).prod()"
        if how == "norm":
            return f"{where}({mask}, {text}, 0).norm()"
        quotient = isinstance(reduction.body, ast.BinOp) and isinstance(reduction.body.op, ast.Div)
        return self._extremum(how, imports, mask, text, operand, "float" if quotient else dtype_kind(dtype))

    def _wide(self, imports: Imports, like: ast.expr) -> tuple[str, str]:
        """The argument that makes a sum of halves in float32, and the dtype that its mean has."""
        picks = self._picks(like)
        dtype = f"{Code(self.facts.source).operand(next(iter(picks.values()), like))}.dtype"
        return f"dtype={imports.name('torch.promote_types')}({dtype}, {imports.name('torch.float32')})", dtype

    def _count(self) -> str:
        """How many elements are picked, as text."""
        mask, code = self.found.mask, Code(self.facts.source)
        if missing_dimensions(self.facts, self.found) == 0:
            return f"{code.operand(mask)}.sum()"
        return f"{_operand(aligned(self.facts, self.found))}.expand_as({code.argument(self.found.tensor)}).sum()"

    def _extremum(self, how: str, imports: Imports, mask: str, text: str, operand: str, kind: str | None) -> str:
        """What does not count is infinite, or the opposite extremum of them all, which every dtype has."""
        least = how in ("max", "amax")
        infinity, opposite = ('float("-inf")', "min") if least else ('float("inf")', "max")
        other = f"{operand}.{opposite}()"
        if kind is None:
            other = f"{infinity} if {operand}.is_floating_point() else {other}"
        self.differences.append(
            Difference("exception", f"`{how}` of nothing gives the {'smallest' if least else 'largest'} value")
        )
        if recorded(self.facts, self.facts.statement) and kind not in ("int", "bool"):
            self.differences.append(
                Difference(
                    "gradients", f"a gradient that infinite elements share, as each is the {how}, is shared by all"
                )
            )
        return f"{imports.name('torch.where')}({mask}, {text}, {infinity if kind == 'float' else other}).{how}()"


def _operand(text: str) -> str:
    return text if text.isidentifier() else f"({text})"


def _same(facts: FunctionFacts, elements: _Elements, node: ast.expr) -> Picked | None:
    """What a node picks, where it is by the mask of `elements`."""
    if node in elements.nodes:
        return elements.found
    found = picked(facts, node)
    return found if found is not None and ast.unparse(found.mask) == ast.unparse(elements.found.mask) else None


def _names_in(facts: FunctionFacts, node: ast.expr) -> set[str]:
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
    return {(qualified(facts, c.func) or "").rpartition(".")[2] for c in calls}


# From the picked elements up to their reduction


def _reduction(
    facts: FunctionFacts, found: Picked, node: ast.expr, nodes: set[ast.expr], inner: Mapping[ast.expr, str]
) -> _Reduction:
    """The reduction that picked elements end in, each by itself."""
    elements = _Elements(facts, found, nodes, inner)
    while True:
        parent = facts.parent(node)
        if isinstance(parent, ast.Attribute) and isinstance(call := facts.parent(parent), ast.Call):
            if call.func is parent and parent.attr in _REDUCTIONS:
                _check_each(facts, elements, node)
                return _Reduction(call, node, parent.attr, _rows(facts, found, call, call.args))
            node = _elementwise(facts, call)
        elif isinstance(parent, ast.Call) and node in parent.args:
            last = (qualified(facts, parent.func) or "").rpartition(".")[2]
            if last in _LOSSES and all(_same(facts, elements, a) for a in parent.args) and not parent.keywords:
                return _Reduction(parent, parent, last)
            if parent.args[0] is node and last in _REDUCTIONS and _of_torch(facts, parent):
                _check_each(facts, elements, node)
                return _Reduction(parent, node, last, _rows(facts, found, parent, parent.args[1:]))
            node = _elementwise(facts, parent)
        elif isinstance(parent, (ast.BinOp, ast.UnaryOp)):
            node = parent
        else:
            raise NotReducibleError("the picked elements are used as they are")


def _elementwise(facts: FunctionFacts, call: ast.Call) -> ast.expr:
    """A call that works on each element by itself."""
    folder, _, last = (qualified(facts, call.func) or "").rpartition(".")
    if folder not in known.FUNCTIONAL or last not in WORKS:
        raise NotReducibleError(f"`{last or ast.unparse(call.func)}` of picked elements has no form that works on all")
    return call


def _check_each(facts: FunctionFacts, elements: _Elements, body: ast.expr) -> None:
    """Is what is reduced computed from one element of each pick, from numbers and from 0-d tensors?"""
    picks = {n for n in ast.walk(body) if isinstance(n, ast.expr) and _same(facts, elements, n)}
    if not one_by_one(facts, body, picks | {*elements.inner}):
        raise NotReducibleError(
            f"`{ast.unparse(body)}` is not computed from elements picked by one mask, one at a time"
        )


def _rows(facts: FunctionFacts, found: Picked, call: ast.Call, arguments: list[ast.expr]) -> bool:
    """Is only the dimension reduced in which a mask of one dimension picks?"""
    given = [*arguments, *(k.value for k in call.keywords if k.arg == "dim")]
    if not given and not call.keywords:
        return False
    mask = facts.value(found.mask)
    last = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    known_rows = isinstance(mask, Tensor) and mask.rank == 1 and last in ("sum", "mean")
    if known_rows and len(given) == 1 and constant(given[0]) == 0 and len(arguments) + len(call.keywords) == 1:
        return True
    raise NotReducibleError(f"`{ast.unparse(call)}` is no reduction of all picked elements")


def _of_torch(facts: FunctionFacts, call: ast.Call) -> bool:
    return (qualified(facts, call.func) or "").rpartition(".")[0] in ("torch", "torch.linalg")


# Picked elements that have a name


def _stored_to(facts: FunctionFacts, node: ast.expr) -> bool:
    return isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load)


def _bound_to(facts: FunctionFacts, node: ast.expr) -> str | None:
    match facts.statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is node:
            return name
    return None


def _loads(facts: FunctionFacts, found: Picked, name: str) -> list[ast.expr]:
    """The reads of a name that is bound once, to picked elements."""
    nodes = [n for n in ast.walk(facts.function) if isinstance(n, ast.Name) and n.id == name]
    loads: list[ast.expr] = [n for n in nodes if isinstance(n.ctx, ast.Load)]
    if len(nodes) - len(loads) != 1 or not loads or facts.body_of(facts.statement) is not facts.function.body:
        raise NotReducibleError("the picked elements are used as they are")
    sources = reads(found.tensor, found.mask)
    body = facts.function.body
    behind = body[body.index(facts.statement) + 1 :]
    if sources & stored(behind) or any(changed_in_place(facts, n) for n in sources):
        raise NotReducibleError("what is picked from changes before the picked elements are used")
    return loads
