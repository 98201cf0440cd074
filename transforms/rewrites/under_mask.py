"""Reductions of elements that a mask picks, written as reductions of all elements under the mask."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor, dtype_kind
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.dtypes import kinds
from graphmend.transforms.legality.gradients.sides import leak, recorded
from graphmend.transforms.legality.operations.derivatives import SINGULAR_AT_ONE
from graphmend.transforms.legality.rows.masked_elements import (
    Picked,
    aligned,
    is_line,
    missing_dimensions,
    other_rank,
    other_shape,
    picked,
    same_dtype,
    unlike,
)
from graphmend.transforms.legality.speculation import repeatable, speculate
from graphmend.transforms.rewrites.masked_losses import Loss

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

REDUCTIONS = frozenset("sum mean prod norm max min amax amin any all std var median quantile logsumexp".split())


class NotReducibleError(Exception):
    """The picked elements are used otherwise; the message says how."""


@dataclass
class Reduction:
    """A reduction of picked elements: the call as a whole, what is reduced, and how."""

    whole: ast.expr
    body: ast.expr
    how: str
    rows: bool = False
    """Only the picked dimension is reduced."""
    option: ast.expr | None = None
    """What else the reduction is given: how many degrees of freedom are taken off, or which quantile is asked for."""
    loss: Loss | None = None


class Elements:
    """Elements that one mask picks, and expressions of them."""

    def __init__(
        self, facts: FunctionFacts, found: Picked, nodes: set[ast.expr], inner: Mapping[ast.expr, str]
    ) -> None:
        self.facts, self.found, self.nodes, self.inner = facts, found, nodes, inner
        self.differences: list[Difference] = []
        self.parts: dict[str, str] = {}
        """Texts that may stand in the new one more than once, with the names that they could have."""

    def _part(self, text: str, name: str) -> str:
        self.parts.setdefault(text, name)
        return text

    def reduced(self, reduction: Reduction, imports: Imports) -> str:
        """The reduction's new text."""
        facts, code = self.facts, Code(self.facts.source)
        where, mask = imports.name("torch.where"), self._part(aligned(facts, self.found), "aligned")
        plain = reduction.body in self.nodes
        self._check_again(reduction)
        picks = self._picks(reduction.body)
        rows = reduction.loss is not None and reduction.loss.of_classes
        for tensor in picks.values():
            if not rows and other_rank(facts, tensor, self.found.tensor):
                parts = f"`{ast.unparse(tensor)}` and `{ast.unparse(self.found.tensor)}`"
                raise NotReducibleError(f"{parts} have different numbers of dimensions")
            self.differences += other_shape(facts, Picked(tensor, self.found.mask))
            self.differences += [] if rows else unlike(facts, tensor, self.found.tensor)
        computed = reduction.loss.arguments if reduction.loss is not None else [] if plain else [reduction.body]
        found = speculate(facts, *computed)
        if found.blockers:
            raise NotReducibleError(found.blockers[0])
        fills = not plain and (reduction.loss is not None or leak(facts, reduction.body) != "never")
        if fills and _names_in(facts, reduction.body) & SINGULAR_AT_ONE:
            raise NotReducibleError(f"`{ast.unparse(reduction.body)}` has no derivative at 1")
        if reduction.loss is not None and reduction.loss.of_classes:
            return self._classified(reduction.loss, imports, picks)
        if reduction.loss is not None and reduction.loss.bounded:
            self._check_bounds(reduction.loss, picks)
        tensors: dict[ast.expr, str] = {
            n: self._part(
                f"{where}({mask}, {code.argument(t)}, 1)", f"{t.id if isinstance(t, ast.Name) else 'kept'}_or_one"
            )
            if fills
            else code.operand(t)
            for n, t in picks.items()
        }
        tensors |= self.inner
        if (loss := reduction.loss) is not None:
            first = facts.value(loss.arguments[0])
            each = f"{where}({mask}, {loss.of_each(facts, imports, tensors)}, 0)"
            self._rounds()
            if loss.how == "sum":
                return f"{each}.sum()"
            if loss.how == "batchmean":
                return f"({each}.sum() / {code.operand(self.found.mask)}.sum())"
            if loss.name == "kl_div":
                self.differences.append(Difference("output", "a mean of `kl_div` no longer warns"))
            if self._mean_of(first.dtype if isinstance(first, Tensor) else None):
                return f"({each}.sum() / {self._count()})"
            if loss.name == "l1_loss" and "complex" in kinds(facts, loss.arguments[0]):
                self.differences.append(Difference("dtype", "a loss of complex numbers becomes complex itself"))
            over, dtype = self._wide(imports, loss.arguments[0])
            return f"({each}.sum({over}) / {self._count()}).to({dtype})"
        text = self._part(code.argument(reduction.body, tensors), "values")
        return self._text(reduction, imports, mask, text)

    def _picks(self, body: ast.expr) -> dict[ast.expr, ast.expr]:
        """The tensors that picks stand for, but for those inside of reductions."""
        found: dict[ast.expr, ast.expr] = {}
        rest: list[ast.AST] = [body]
        while rest:
            node = rest.pop()
            if isinstance(node, ast.expr) and node in self.inner:
                continue
            if isinstance(node, ast.expr) and (pick := same_pick(self.facts, self, node)):
                found[node] = pick.tensor
            else:
                rest += ast.iter_child_nodes(node)
        return found

    def _check_bounds(self, loss: Loss, picks: Mapping[ast.expr, ast.expr]) -> None:
        """A loss raises for what is not between 0 and 1, and what stands in for elements that do not count is 1: it
        may be cast, and no more is computed with it, unless the result is between 0 and 1 always.
        """
        for argument in loss.arguments:
            kept = _uncast(argument)
            inside = isinstance(kept, ast.Compare) or _names_at(self.facts, kept) == "sigmoid"
            if kept not in picks and not inside:
                raise NotReducibleError(
                    f"`{ast.unparse(argument)}` may be out of the loss's range where none is picked"
                )

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

    def _check_again(self, reduction: Reduction) -> None:
        """The new text evaluates the tensor and the mask at other places, and some more than once."""
        for part in (self.found.tensor, self.found.mask):
            if not repeatable(self.facts, part):
                raise NotReducibleError(f"`{ast.unparse(part)}` would be evaluated more than once")
        if reduction.how in ("any", "all"):
            kept = self.found.tensor if reduction.body in self.nodes else reduction.body
            value = self.facts.value(kept)
            if not (isinstance(value, Tensor) and value.dtype == "bool"):
                raise NotReducibleError(f"`{ast.unparse(kept)}` is not known to be of dtype bool")

    def _text(self, reduction: Reduction, imports: Imports, mask: str, text: str) -> str:
        how, code = reduction.how, Code(self.facts.source)
        where = imports.name("torch.where")
        operand = text if text.isidentifier() else f"({text})"
        dim = self._dims(reduction)
        if how in ("any", "all"):
            joined = f"{operand} & {_operand(mask)}" if how == "any" else f"{operand} | ~{_operand(mask)}"
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
        if how in ("std", "var"):
            return self._spread(reduction, imports, mask, text)
        if how in ("median", "quantile"):
            return self._ranked(reduction, imports, mask, text, dtype_kind(dtype))
        if how == "logsumexp":
            if dtype_kind(dtype) != "float":
                raise NotReducibleError(f"`{ast.unparse(reduction.body)}` is not known to hold floating numbers")
            self._rounds()
            return f'{where}({mask}, {text}, float("-inf")).logsumexp({dim})'
        if how == "prod":
            return f"{where}({mask}, {text}, 1).prod()"
        if how == "norm":
            return f"{where}({mask}, {text}, 0).norm()"
        quotient = isinstance(reduction.body, ast.BinOp) and isinstance(reduction.body.op, ast.Div)
        return self._extremum(reduction, imports, mask, text, operand, "float" if quotient else dtype_kind(dtype))

    def _dims(self, reduction: Reduction) -> str:
        """The dimensions that are reduced, as text: where only the picked one is, all those of the mask."""
        if not reduction.rows:
            return ""
        value = self.facts.value(self.found.mask)
        if isinstance(value, Tensor) and value.rank is not None:
            return "0" if value.rank == 1 else str(tuple(range(value.rank)))
        says = f"`{ast.unparse(self.found.mask)}` is taken to have a dimension"
        self.differences.append(Difference("shape", says))
        return f"tuple(range({Code(self.facts.source).operand(self.found.mask)}.dim()))"

    def _classified(self, loss: Loss, imports: Imports, picks: Mapping[ast.expr, ast.expr]) -> str:
        """A loss of classes, which leaves out where the class is `ignore_index`."""
        facts, code = self.facts, Code(self.facts.source)
        logits, classes = loss.arguments
        texts: dict[ast.expr, str] = {n: code.operand(t) for n, t in picks.items()} | dict(self.inner)
        mask = self.found.mask
        if any(missing_dimensions(facts, Picked(t, mask)) != 0 for t in picks_below(classes, picks)):
            raise NotReducibleError(f"`{ast.unparse(classes)}` is not known to hold one class for each element picked")
        if any(missing_dimensions(facts, Picked(t, mask)) not in (1, None) for t in picks_below(logits, picks)):
            raise NotReducibleError(f"`{ast.unparse(logits)}` is not known to hold a row for each element picked")
        self._rounds()
        if recorded(facts, facts.statement):
            says = "a row that is not picked and holds infinite or NaN values may get NaN for gradients"
            self.differences.append(Difference("gradients", says))
        line = is_line(facts, mask)
        rows = code.operand(logits, texts) + ("" if line else ".flatten(0, -2)")
        kept = f"{code.argument(mask)}, {code.argument(classes, texts)}, {loss.ignored(facts)}"
        where = f"{imports.name('torch.where')}({kept})"
        return loss.written(facts, rows, where + ("" if line else ".flatten()"))

    def _spread(self, reduction: Reduction, imports: Imports, mask: str, text: str) -> str:
        """A standard deviation or variance, as torch defines it: of nothing, and of one element, it is NaN."""
        where, dim = imports.name("torch.where"), self._dims(reduction)
        whole = Code(self.facts.source).operand(self.found.mask if reduction.rows else self.found.tensor)
        count = self._part(f"{whole}.sum()", "count") if reduction.rows else self._count()
        value = self.facts.value(reduction.body)
        if isinstance(value, Tensor) and (of := dtype_kind(value.dtype)) in ("int", "bool", "complex"):
            numbers = "complex" if of == "complex" else "whole"
            raise NotReducibleError(f"`{reduction.how}` of {numbers} numbers has no form under a mask")
        self._rounds()
        cast = precise = ""
        if isinstance(value, Tensor) and value.dtype in ("float32", "float64"):
            precise = "" if value.dtype == "float32" else ".double()"
        else:
            same = reduction.body in self.nodes or same_dtype(self.facts, reduction.body, self.found.tensor)
            dtype = f"{Code(self.facts.source).operand(self.found.tensor) if same else _operand(text)}.dtype"
            precise, cast = f".to({_at_least_float(imports, dtype)})", f".to({dtype})"
            text = self._part(f"{_operand(text)}{precise}", "precise")
        if not isinstance(value, Tensor) or dtype_kind(value.dtype) is None:
            says = f"`{reduction.how}` of whole numbers no longer raises"
            self.differences.append(Difference("exception", says))
            says = f"`{reduction.how}` of complex numbers becomes complex itself"
            self.differences.append(Difference("dtype", says))
        self.differences.append(Difference("output", f"`{reduction.how}` of one element, or none, no longer warns"))
        # what does not count adds to the number of elements alone; one element differs from its mean by nothing, while
        # the mean of many equal numbers may be rounded
        mean = self._part(f"{where}({mask}, {text}, 0).sum({dim}) / {count}", "mean")
        centred = f"{where}({mask}, {_operand(text)} - {mean}, 0)"
        spread = f"{centred}.{reduction.how}({f'{dim}, ' if dim else ''}correction=0)"
        free = count if constant(reduction.option) in (0, False) else f"({count} - 1).clamp(min=0)"
        share = f"({whole}.numel() / {free}{precise})"
        if reduction.how == "var":
            return f"({spread} * {share}){cast}"
        if recorded(self.facts, self.facts.statement):
            says = "the gradient of the deviation of one element is zero instead of NaN"
            self.differences.append(Difference("gradients", says))
        return f"({spread} * {share}.sqrt()){cast}"

    def _ranked(self, reduction: Reduction, imports: Imports, mask: str, text: str, kind: str | None) -> str:
        """What stands at a place among the sorted elements; those that do not count are NaN."""
        if kind != "float":
            raise NotReducibleError(f"`{ast.unparse(reduction.body)}` is not known to hold floating numbers")
        how, option = reduction.how, ""
        self.differences.append(Difference("nan", f"`{how}` leaves out NaN that is picked"))
        if how == "quantile":
            self.differences.append(Difference("exception", "`quantile` of nothing is NaN"))
            assert reduction.option is not None
            option = Code(self.facts.source).argument(reduction.option)
        return f'{imports.name("torch.where")}({mask}, {text}, float("nan")).nan{how}({option})'

    def _wide(self, imports: Imports, like: ast.expr) -> tuple[str, str]:
        """The argument that makes a sum of halves in float32, and the dtype that its mean has."""
        picks = self._picks(like)
        dtype = f"{Code(self.facts.source).operand(next(iter(picks.values()), like))}.dtype"
        return f"dtype={_at_least_float(imports, dtype)}", dtype

    def _count(self) -> str:
        """How many elements are picked, as text."""
        mask, code = self.found.mask, Code(self.facts.source)
        if missing_dimensions(self.facts, self.found) == 0:
            return self._part(f"{code.operand(mask)}.sum()", "count")
        whole = f"{_operand(aligned(self.facts, self.found))}.expand_as({code.argument(self.found.tensor)})"
        return self._part(f"{whole}.sum()", "count")

    def _extremum(
        self, reduction: Reduction, imports: Imports, mask: str, text: str, operand: str, kind: str | None
    ) -> str:
        """What does not count is infinite, or the opposite extremum of them all, which every dtype has."""
        how, dim = reduction.how, self._dims(reduction)
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
        kept = f"{imports.name('torch.where')}({mask}, {text}, {infinity if kind == 'float' else other})"
        if isinstance(reduction.whole, ast.Call):
            return f"{kept}.{how}({dim})"
        return f"{kept}{self._flat()}.{how.removeprefix('a')}(0).values"  # one element has the gradient, as before

    def _flat(self) -> str:
        """What makes one dimension of those of the mask, as picking does."""
        value = self.facts.value(self.found.mask)
        rank = value.rank if isinstance(value, Tensor) else None
        if rank is None:
            return f".flatten(0, {Code(self.facts.source).operand(self.found.mask)}.dim() - 1)"
        return "" if rank == 1 else f".flatten(0, {rank - 1})"


def _at_least_float(imports: Imports, dtype: str) -> str:
    """The text of the dtype in which halves are added up."""
    return f"{imports.name('torch.promote_types')}({dtype}, {imports.name('torch.float32')})"


def _operand(text: str) -> str:
    return text if text.isidentifier() else f"({text})"


def same_pick(facts: FunctionFacts, elements: Elements, node: ast.expr) -> Picked | None:
    """What a node picks, where it is by the mask of `elements`."""
    if node in elements.nodes:
        return elements.found
    found = picked(facts, node)
    return found if found is not None and ast.unparse(found.mask) == ast.unparse(elements.found.mask) else None


_CASTS = frozenset("float double half bfloat16 to type_as detach clone".split())


def _uncast(node: ast.expr) -> ast.expr:
    """A tensor without the methods around it that keep 0, 1 and what is between them."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CASTS:
        node = node.func.value
    return node


def _names_at(facts: FunctionFacts, node: ast.expr) -> str:
    """The last word of what is called."""
    return (qualified(facts, node.func) or "").rpartition(".")[2] if isinstance(node, ast.Call) else ""


def _names_in(facts: FunctionFacts, node: ast.expr) -> set[str]:
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
    return {(qualified(facts, c.func) or "").rpartition(".")[2] for c in calls}


def picks_below(node: ast.expr, picks: Mapping[ast.expr, ast.expr]) -> list[ast.expr]:
    """The tensors that are picked from in an expression."""
    return [picks[n] for n in ast.walk(node) if isinstance(n, ast.expr) and n in picks]
