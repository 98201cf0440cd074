"""Functions of torch that take a Python number alone: what they compute is written out, with a 0-d tensor for it."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from string import Formatter
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Static, Tensor, dtype_kind
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.liveness import reads
from graphmend.transforms.code.qualified_names import constant, number_type
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.dtypes import kinds
from graphmend.transforms.legality.memory import written_to
from graphmend.transforms.legality.numbers.arithmetic import NeedsPythonNumberError, of_its_dtype
from graphmend.transforms.legality.numbers.as_tensors import PROMOTES
from graphmend.transforms.legality.numbers.counterparts import Counterpart
from graphmend.transforms.legality.numbers.meetings import Meetings
from graphmend.transforms.legality.operations import formulas
from graphmend.transforms.legality.speculation import repeatable

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_RANGE = Difference("exception", "a number that is not in range gives less, or something else, or raises otherwise")
_LAYOUT = Difference("strides", "the result may have other strides")
_COPY = Difference("aliasing", "the result is a copy instead of a view")
_TIES = Difference("gradients", "of equal elements another one may get the gradient")
_RANKS = Difference("exception", "a tensor of fewer than two dimensions raises otherwise")
_WHOLE = Difference("exception", "a number that is no whole one raises no more")
#: what a loss does with what it computes of each element
_REDUCED: dict[object, str] = {"mean": ".mean()", "sum": ".sum()", "none": ""}


class _Given(NamedTuple):
    """A call of a function that takes, or moves, parts of a tensor, with the number among its arguments."""

    facts: FunctionFacts
    call: ast.Call
    tensor: ast.expr
    arguments: Mapping[str, ast.expr]
    number: str
    """The parameter that it is given for."""

    def constant(self, parameter: str) -> object:
        """An argument that is written out, alone or as the only one of a tuple."""
        node = self.arguments.get(parameter)
        if isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) == 1:
            node = node.elts[0]
        return constant(node)

    def dim(self, parameter: str) -> int | None:
        found = self.constant(parameter)
        return found if isinstance(found, int) and not isinstance(found, bool) else None

    @property
    def is_line(self) -> bool:
        value = self.facts.value(self.tensor)
        return isinstance(value, Tensor) and value.rank == 1


class _Picked(NamedTuple):
    """The same parts, picked by indices."""

    text: str
    differences: tuple[Difference, ...]
    asks: bool = False
    """Does the text ask torch for the number, which is mended next?"""
    whole: ast.expr | None = None
    """What is written otherwise, if not the call alone."""
    target: ast.Tuple | None = None
    """A target of two names of which only the first is left."""


class WrittenOut(Meetings):
    """Meetings in which functions are written otherwise, as they take no tensor for the number."""

    def _torch(self, call: ast.Call, node: ast.expr, dtype: Hashable, last: str, *, method: bool) -> None:
        receiver = [call.func.value] if method and isinstance(call.func, ast.Attribute) else []
        arguments, named = [*receiver, *call.args], next((k.arg for k in call.keywords if k.value is node), None)
        place = next((i for i, a in enumerate(arguments) if a is node), None)
        like = formulas.LIKE.get(last)
        if last == "linspace" and (place in (0, 1) or named in ("start", "end")):
            return  # takes both
        if like is not None and (place == like.place or named == like.parameter):
            self._like(call, node, arguments[0], like.differences)
        elif not self.rewrites or not (
            self._formula(call, arguments, node, dtype, last) or self._part(call, arguments, node, dtype, last)
        ):
            super()._torch(call, node, dtype, last, method=method)

    @abstractmethod
    def _needs_tensor(self, node: ast.expr) -> None:
        """Refuses where a number may stay one that is written as a tensor."""

    def _like(self, call: ast.Call, node: ast.expr, tensor: ast.expr, differences: Iterable[Difference]) -> None:
        """A number that must have the dtype of a tensor."""
        if not self.rewrites or not repeatable(self.facts, tensor):
            raise NeedsPythonNumberError(f"`{shortened(call)}` needs a Python number")
        before = self.counterparts.get(node, Counterpart(node))
        self._needs_tensor(node)
        self.counterparts[node] = replace(before, like=of_its_dtype(self.facts, tensor) or tensor, floating=True)
        self.differences += differences

    def _formula(self, call: ast.Call, arguments: list[ast.expr], node: ast.expr, dtype: Hashable, last: str) -> bool:
        """A function of each element."""
        form = formulas.FORMULAS.get(last)
        given = _given(call, arguments, form.parameters.split()) if form is not None else None
        if form is None or given is None:
            return False
        written = [n for _, n, _, _ in Formatter().parse(form.text) if n]
        fields = set(written)
        reduced = given.pop("reduction", None)
        how = constant(reduced) if reduced is not None else "mean" if last in formulas.LOSSES else "none"
        unused = [part for n, part in given.items() if n not in fields]
        if (
            next((n for n, part in given.items() if part is node), None) != form.number
            or not fields <= given.keys()
            or not all(isinstance(part, ast.Constant) and not part.value for part in unused)
            or how not in _REDUCED
            # what is evaluated once, and when it was, may do anything
            or not ([n for n in given if n in fields] == written or all(self._may_come_again(given[n]) for n in fields))
        ):
            return False
        tensor = given["input"]
        of = self.facts.value(tensor)
        if not isinstance(of, Tensor) or of.ndarray:
            return False
        is_float = kinds(self.facts, tensor) == {"float"}
        self.differences += form.differences
        if not is_float:
            self.differences.append(Difference("exception", f"`{last}` of whole numbers raises no more, or otherwise"))
        others = [given[n] for n in fields if given[n] not in (node, tensor)]
        if last.endswith("_"):
            self._changes(of, dtype, ast.Mult)
        else:
            self._meets(of, dtype, ast.Mult, left=False, number=node, other=tensor)
            if any(kinds(self.facts, other) != {"float"} for other in others):
                self.differences.append(PROMOTES)
        parts = tuple((n, given[n]) for n in sorted(fields))
        tensors = all(isinstance(v, Tensor) and not v.ndarray for v in map(self.facts.value, others))
        text = (form.of_tensors if tensors else "") or form.text
        text = text if is_float else form.of_any or text
        self._needs_tensor(node)
        self.counterparts[call] = Counterpart(call, formula=text + _REDUCED[how], parts=parts)
        return True

    def _may_come_again(self, node: ast.expr) -> bool:
        """May an expression be evaluated at another time, and more than once? What is taken out of a tensor stays in
        it.
        """
        if node is self._start and isinstance(node, ast.Call):
            parts: Iterable[ast.expr] = [node.func.value] if isinstance(node.func, ast.Attribute) else node.args
        elif isinstance(node, ast.BinOp):
            parts = [node.left, node.right]
        else:
            return repeatable(self.facts, node)
        return all(map(self._may_come_again, parts))

    def _part(self, call: ast.Call, arguments: list[ast.expr], node: ast.expr, dtype: Hashable, last: str) -> bool:
        """A function that takes, or moves, parts of a tensor."""
        parameters, form = _PARTS.get(last, ("", None))
        given = _given(call, arguments, parameters.split())
        if form is None or given is None or dtype_kind(dtype) not in ("int", None):
            return False
        tensor = given.pop("input")
        value = self.facts.value(tensor)
        name = next((n for n, part in given.items() if part is node), None)
        if name is None or not isinstance(value, Tensor) or value.ndarray or not repeatable(self.facts, tensor):
            return False
        found = form(_Given(self.facts, call, tensor, given, name))
        if found is None:
            return False
        whole = found.whole or call
        parts = tuple((n, part) for n, part in (("input", tensor), *given.items()) if f"{{{n}}}" in found.text)
        self._needs_tensor(node)
        self.counterparts[whole] = Counterpart(whole, formula=found.text, parts=parts)
        if found.target is not None:
            self.counterparts[found.target] = Counterpart(found.target, formula=ast.unparse(found.target.elts[0]))
        self.differences += found.differences
        if dtype_kind(dtype) != "int":
            self.differences.append(_WHOLE)
        if found.asks:
            self.asks.append(whole)
        return True


def _given(call: ast.Call, arguments: list[ast.expr], parameters: list[str]) -> dict[str, ast.expr] | None:
    """The arguments by the name of their parameter, the tensor among them; None where there are others."""
    given = dict(zip(parameters, arguments, strict=False)) | {k.arg or "": k.value for k in call.keywords}
    many = len(arguments) + len(call.keywords)
    return given if len(given) == many and "input" in given and given.keys() <= {*parameters} else None


def _narrow(given: _Given) -> _Picked | None:
    """`x.narrow(0, n, 3)`, a part of known length; `x.narrow(0, 0, n)`, a slice."""
    dim = given.dim("dim")
    if dim is None or len(given.arguments) < 3 or written_to(given.facts, given.call):
        return None
    if given.number == "length":
        start = given.dim("start")
        if start is None or min(dim, start) < 0:
            return None
        part = f"{start}:{start} + {{length}}" if start else ":{length}"
        return _Picked(f"{{input}}{_at(dim, part)}", (_RANGE,), asks=True)
    length = given.arguments["length"]
    if given.number != "start" or not (
        number_type(given.facts, length) is not None or isinstance(given.facts.value(length), Static)
    ):
        return None
    positions = "torch.arange({length}, device={input}.device)"
    return _Picked(f"{{input}}{_at(dim, f'{{start}} + {positions}')}", (_COPY, _LAYOUT, _RANGE))


def _roll(given: _Given) -> _Picked | None:
    """`torch.roll(x, n, 0)`."""
    dim = given.dim("dims") if "dims" in given.arguments else 0 if given.is_line else None
    if dim is None or given.number != "shifts":
        return None
    size = f"{{input}}.shape[{dim}]"
    positions = f"(torch.arange({size}, device={{input}}.device) - {{shifts}}) % {size}"
    return _Picked(f"{{input}}{_at(dim, positions)}", (_LAYOUT,))


def _select(given: _Given) -> _Picked | None:
    """`x.select(0, n)` is `x[n]`."""
    dim = given.dim("dim")
    if dim is None or dim < 0 or given.number != "index":
        return None
    return _Picked(f"{{input}}{_at(dim, '{index}')}", (), asks=True)


def _topk(given: _Given) -> _Picked | None:
    """The values of `x.topk(n)` of one dimension, as elements that positions pick, which is mended next."""
    largest = given.constant("largest") if "largest" in given.arguments else True
    others = given.arguments.keys() - {"k", "dim", "largest"}
    if others or not given.is_line or given.number != "k" or not isinstance(largest, bool):
        return None
    if "dim" in given.arguments and given.dim("dim") not in (0, -1):
        return None
    values = _values(given)
    if values is None:
        return None
    ordered = f"{{input}}.sort({'descending=True' if largest else ''}).values"
    positions = "torch.arange({input}.shape[0], device={input}.device)"
    return _Picked(f"{ordered}[{positions} < {{k}}]", (_RANGE, _LAYOUT, _TIES), True, *values)


def _kthvalue(given: _Given) -> _Picked | None:
    """The value of `x.kthvalue(n)`, which is element n - 1 of those in order."""
    dim = given.dim("dim") if "dim" in given.arguments else -1
    values = _values(given)
    if dim is None or values is None or "keepdim" in given.arguments or given.number != "k":
        return None
    ordered = f"{{input}}.sort({'' if dim == -1 else dim}).values"
    picked = f"{ordered}.index_select({dim}, ({{k}} - 1).reshape(1)).squeeze({dim})"
    return _Picked(picked, (_RANGE, _LAYOUT, _TIES), False, *values)


def _values(given: _Given) -> tuple[ast.expr, ast.Tuple | None] | None:
    """What is written otherwise where of the values and the places that a call gives only the values are used, and the
    target of both if there is one.
    """
    match given.facts.parent(given.call):
        case ast.Attribute(attr="values") | ast.Subscript(slice=ast.Constant(value=0)) as parent:
            return parent, None
        case ast.Assign(targets=[ast.Tuple(elts=[ast.Name(), ast.Name(id=places)]) as pair]):
            return None if places in reads(given.facts.function) else (given.call, pair)
    return None


def _triangle(compares: str) -> Callable[[_Given], _Picked | None]:
    """`x.tril(n)` and `x.triu(n)`: elements on one side of a diagonal, the others are zero."""

    def form(given: _Given) -> _Picked | None:
        columns, rows = (f"torch.arange({{input}}.shape[{dim}], device={{input}}.device)" for dim in (-1, -2))
        side = f"{columns} {compares} {rows}[:, None] + {{diagonal}}"
        return _Picked(f"torch.where({side}, {{input}}, False)", (_LAYOUT, _RANKS))

    return form


def _at(dim: int, index: str) -> str:
    """An index in a dimension, which may be counted from the end."""
    return f"[{':, ' * dim}{index}]" if dim >= 0 else f"[..., {index}{', :' * (-dim - 1)}]"


#: the parameters, and how the parts are picked
_PARTS: dict[str, tuple[str, Callable[[_Given], _Picked | None]]] = {
    "narrow": ("input dim start length", _narrow),
    "roll": ("input shifts dims", _roll),
    "select": ("input dim index", _select),
    "topk": ("input k dim largest sorted", _topk),
    "kthvalue": ("input k dim keepdim", _kthvalue),
    "tril": ("input diagonal", _triangle("<=")),
    "triu": ("input diagonal", _triangle(">=")),
}
