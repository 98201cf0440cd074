"""Reduce all elements under a mask instead of those that a mask picks out.

Before:
    total = (x[x > 0] ** 2).sum()

After:
    total = torch.where(x > 0, x ** 2, 0).sum()

Legal when:
    the mask is a bool tensor over the leading dimensions of what it picks from; the picked elements go through
    nothing but elementwise arithmetic, with numbers, 0-d tensors and elements picked by the same mask, before a
    reduction that has a value at which an element does not count: a sum, mean, product, norm, minimum, maximum,
    `any`, `all`, or a loss.

Differs in:
    sums may round differently. A minimum or maximum of nothing gives infinity instead of an exception.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor, dtype_kind
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import reads, stored
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import constant, number_type, qualified
from graphmend.transforms.code.text_edits import replace_expression, replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.gradients import leak
from graphmend.transforms.legality.masked_elements import Picked, aligned, missing_dimensions, picked
from graphmend.transforms.legality.memory import changed_in_place
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.speculation import repeatable, speculate
from graphmend.transforms.rewrites.answers import offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "masked_reduce"
_TITLE = "reduce all elements under the mask"

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
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


def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    found = picked(facts, facts.node)
    if found is None or not isinstance(facts.node, ast.expr) or _stored_to(facts, facts.node):
        return None
    try:
        name = _bound_to(facts, facts.node)
        if name is None:
            return _offer(facts, [_Elements(facts, found, {facts.node})], [_reduction(facts, found, facts.node)], [])
        uses = _loads(facts, found, name)
        elements = [_Elements(facts, found, {use}) for use in uses]
        return _offer(facts, elements, [_reduction(facts, found, use) for use in uses], [facts.statement])
    except NotReducibleError as error:
        return refuse(NAME, str(error))


def _offer(
    facts: FunctionFacts, elements: list[_Elements], reductions: list[_Reduction], dropped: list[ast.stmt]
) -> Fix | Refusal:
    imports = Imports(facts)
    new = [one.reduced(reduction, imports) for one, reduction in zip(elements, reductions, strict=True)]
    if dropped and not replaceable(facts, dropped):
        return refuse(NAME, "the statement shares its line with another one")

    def make() -> list[TextEdit]:
        edits = [replace_expression(facts.source, r.whole, text) for r, text in zip(reductions, new, strict=True)]
        return [*imports.edits(), *edits, *(_deletion(facts, statement) for statement in dropped)]

    return offer(NAME, _TITLE, facts, make, [d for one in elements for d in one.differences])


def _deletion(facts: FunctionFacts, statement: ast.stmt) -> TextEdit:
    """Takes a statement out with its line; a comment behind it stays."""
    edit = replace_statements(facts.source, [statement], "pass\n")
    if edit.text != "pass" or len(facts.body_of(statement)) == 1:
        return edit
    line = facts.source.lines.line(edit.span.end_line - 1)
    rest = line[edit.span.end_column :]
    if rest.strip():
        behind = edit.span.end_column + len(rest) - len(rest.lstrip())
        return TextEdit(edit.span._replace(end_column=behind), "")
    return TextEdit(edit.span._replace(column=0, end_line=edit.span.end_line + 1, end_column=0), "")


class _Elements:
    """Elements that one mask picks, and expressions of them."""

    def __init__(self, facts: FunctionFacts, found: Picked, nodes: set[ast.expr]) -> None:
        self.facts, self.found, self.nodes = facts, found, nodes
        self.differences: list[Difference] = []

    def reduced(self, reduction: _Reduction, imports: Imports) -> str:
        """The reduction's new text."""
        facts, code = self.facts, Code(self.facts.source)
        where, mask = imports.name("torch.where"), aligned(facts, self.found)
        plain = reduction.body in self.nodes
        self._check_again(reduction)
        picks = {
            n: p.tensor for n in ast.walk(reduction.body) if isinstance(n, ast.expr) and (p := _same(facts, self, n))
        }
        found = speculate(facts, *([] if plain else [reduction.body]))
        if found.blockers:
            raise NotReducibleError(found.blockers[0])
        fills = not plain and (reduction.how in _LOSSES or leak(facts, reduction.body) != "never")
        if fills and _names_in(facts, reduction.body) & _SINGULAR_AT_ONE:
            raise NotReducibleError(f"`{ast.unparse(reduction.body)}` has no derivative at 1")
        tensors: dict[ast.expr, str] = {
            n: f"{where}({mask}, {code.argument(t)}, 1)" if fills else code.operand(t) for n, t in picks.items()
        }
        if reduction.how in _LOSSES:
            assert isinstance(reduction.body, ast.Call)
            loss = f'{code.text(reduction.body, tensors)[:-1].rstrip().rstrip(",")}, reduction="none")'
            return self._mean(f"{where}({mask}, {loss}, 0).sum()", self.found.tensor)
        text = code.argument(reduction.body, tensors)
        return self._text(reduction, imports, mask, text)

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
        if how in ("sum", "mean"):
            self.differences.append(
                Difference("rounding", "sums may round differently, as they are made in another order")
            )
            total = f"{where}({mask}, {text}, 0).sum({dim})"
            if how == "sum":
                return total
            if reduction.rows:
                return f"({total} / {code.operand(self.found.mask)}.sum())"
            return self._mean(total, self.found.tensor)
        if how == "prod":
            return f"{where}({mask}, {text}, 1).prod()"
        if how == "norm":
            self.differences.append(
                Difference("rounding", "sums may round differently, as they are made in another order")
            )
            return f"{where}({mask}, {text}, 0).norm()"
        return self._extremum(how, imports, mask, text, operand)

    def _mean(self, total: str, tensor: ast.expr) -> str:
        mask, code = self.found.mask, Code(self.facts.source)
        count = f"{code.operand(mask)}.sum()"
        if missing_dimensions(self.facts, self.found) != 0:
            count = f"{_operand(aligned(self.facts, self.found))}.expand_as({code.argument(tensor)}).sum()"
        return f"({total} / {count})"

    def _extremum(self, how: str, imports: Imports, mask: str, text: str, operand: str) -> str:
        least = how in ("max", "amax")
        infinity, limit = ('float("-inf")', "min") if least else ('float("inf")', "max")
        value = self.facts.value(self.found.tensor)
        kind = dtype_kind(value.dtype) if isinstance(value, Tensor) else None
        bound = f"{imports.name('torch.iinfo')}({operand}.dtype).{limit}"
        other = infinity if kind == "float" else f"{infinity} if {operand}.is_floating_point() else {bound}"
        self.differences.append(
            Difference("exception", f"`{how}` of nothing gives the {'smallest' if least else 'largest'} value")
        )
        return f"{imports.name('torch.where')}({mask}, {text}, {other}).{how}()"


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


def _reduction(facts: FunctionFacts, found: Picked, node: ast.expr) -> _Reduction:
    """The reduction that picked elements end in."""
    elements = _Elements(facts, found, {node})
    while True:
        parent = facts.parent(node)
        if isinstance(parent, ast.Attribute) and isinstance(call := facts.parent(parent), ast.Call):
            if call.func is parent and parent.attr in _REDUCTIONS:
                return _Reduction(call, node, parent.attr, _rows(facts, found, call, call.args))
            node = _elementwise(facts, elements, call, call.args)
        elif isinstance(parent, ast.Call) and node in parent.args:
            last = (qualified(facts, parent.func) or "").rpartition(".")[2]
            if last in _LOSSES and all(_same(facts, elements, a) for a in parent.args) and not parent.keywords:
                return _Reduction(parent, parent, last)
            if parent.args[0] is node and last in _REDUCTIONS and _of_torch(facts, parent):
                return _Reduction(parent, node, last, _rows(facts, found, parent, parent.args[1:]))
            node = _elementwise(facts, elements, parent, parent.args[1:])
        elif isinstance(parent, (ast.BinOp, ast.UnaryOp)):
            _operands(facts, elements, parent)
            node = parent
        else:
            raise NotReducibleError("the picked elements are used as they are")


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


def _elementwise(facts: FunctionFacts, elements: _Elements, call: ast.Call, others: list[ast.expr]) -> ast.expr:
    """A call that works on each element by itself."""
    folder, _, last = (qualified(facts, call.func) or "").rpartition(".")
    if folder not in known.FUNCTIONAL or last not in known.ELEMENTWISE | known.CASTS | known.ARITHMETIC | known.TESTS:
        raise NotReducibleError(f"`{last or ast.unparse(call.func)}` of picked elements has no form that works on all")
    for other in [*others, *(k.value for k in call.keywords)]:
        _operand_fits(facts, elements, other)
    return call


def _operands(facts: FunctionFacts, elements: _Elements, node: ast.BinOp | ast.UnaryOp) -> None:
    if isinstance(node, ast.UnaryOp):
        if isinstance(node.op, (ast.USub, ast.Invert)):
            return
    elif isinstance(node.op, _ARITHMETIC):
        for side in (node.left, node.right):
            _operand_fits(facts, elements, side)
        return
    raise NotReducibleError(f"`{ast.unparse(node)}` is no arithmetic")


def _operand_fits(facts: FunctionFacts, elements: _Elements, node: ast.expr) -> None:
    """A number, a 0-d tensor, or elements that are picked by the same mask, and arithmetic of these."""
    if number_type(facts, node) is not None or _same(facts, elements, node):
        return
    value = facts.value(node)
    if isinstance(value, Tensor) and value.rank == 0:
        return
    if isinstance(node, (ast.BinOp, ast.UnaryOp)):
        _operands(facts, elements, node)
        if isinstance(node, ast.UnaryOp):
            _operand_fits(facts, elements, node.operand)
        return
    if isinstance(node, ast.Call):
        receiver = [node.func.value] if isinstance(node.func, ast.Attribute) and not _of_torch(facts, node) else []
        for argument in [*receiver, *node.args]:
            _operand_fits(facts, elements, argument)
        _elementwise(facts, elements, node, [])
        return
    raise NotReducibleError(f"`{ast.unparse(node)}` is not picked by the same mask")


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
