"""The subject of a question: what the analysis knows about one break, as plain data down to text and numbers.

It is the paper's MT-IR of a call site (arXiv 2405.08965, algorithm 1): only what the question needs, resolved through
definitions, and no more of the file than the one function.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from graphmend.analysis.lattice.external import ExternalInstance, ExternalName
from graphmend.analysis.lattice.values import (
    Choice,
    Const,
    Container,
    Scalar,
    Static,
    Tensor,
    Value,
    dtype_kind,
    join_all,
)
from graphmend.analysis.program.entities import Class, Function, Instance, Record
from graphmend.analysis.torch_facts import load

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding
    from graphmend.analysis.program.definitions import FunctionInfo
    from graphmend.analysis.syntax.source import Source
    from graphmend.transforms.fix import Refusal

_DEEPEST = 3
_LONGEST = 160


class Known(NamedTuple):
    """A name that the function reads, and what is known of it."""

    name: str
    type: str


class Signature(NamedTuple):
    """A function of the project that the function calls."""

    head: str
    docstring: str


class Cause(NamedTuple):
    """The break: in GraphMend's words, and in TorchDynamo's where its registry has any."""

    code: str
    message: str
    effect: str
    evidence: tuple[str, ...]
    advice: str
    dynamo: str
    hints: tuple[str, ...]


class Subject(NamedTuple):
    """One break and the function around it. `lines` are the break's first and last line, counted from 1 in `source`."""

    function: str
    source: str
    lines: tuple[int, int]
    cause: Cause
    refusals: tuple[str, ...]
    names: tuple[Known, ...]
    callees: tuple[Signature, ...]
    state: tuple[Known, ...]
    shapes: tuple[str, ...]
    torch: str


class Extent(NamedTuple):
    """Where a function stands in its file: its lines, decorators included, counted from 1; the last one is in it."""

    first: int
    last: int


def extent(facts: FunctionFacts) -> Extent:
    """The lines of the function around a finding."""
    node = facts.function
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return Extent(first, node.end_lineno or node.lineno)


def function_text(source: Source, where: Extent) -> str:
    """The lines of a function, as they stand in its file."""
    starts = source.lines.starts
    return source.text[starts[where.first - 1] : starts[where.last] if where.last < len(starts) else None]


def subject(
    finding: Finding, facts: FunctionFacts, refusals: Sequence[Refusal] = (), shapes: Sequence[str] = ()
) -> Subject:
    """What is asked about a finding. `refusals` say why no rule mends it, `shapes` are those of a check's inputs."""
    where = extent(facts)
    text = function_text(facts.source, where)
    shift = where.first - 1
    return Subject(
        finding.function,
        text,
        (finding.span.line - shift, finding.span.end_line - shift),
        _cause(finding, facts),
        tuple(dict.fromkeys(refusal.reason for refusal in refusals)),
        tuple(_names(facts)),
        tuple(_callees(facts)),
        tuple(_state(facts)),
        tuple(shapes),
        facts.torch_version,
    )


def _cause(finding: Finding, facts: FunctionFacts) -> Cause:
    reason = load(facts.torch_version).break_reason(finding.gb_id) if finding.gb_id else None
    # the evidence may name other files; what they are called is nobody's business
    evidence = tuple(line.replace(finding.path, "this file") for line in finding.evidence)
    words = reason.explanation if reason is not None else ""
    return Cause(
        finding.code,
        finding.message,
        finding.effect,
        evidence,
        finding.advice,
        words,
        reason.hints if reason is not None else (),
    )


def _names(facts: FunctionFacts) -> Iterator[Known]:
    """The names that are read, parameters first, in the order of the text."""
    a = facts.function.args
    annotations = {arg.arg: arg.annotation for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs)}
    places: dict[str, list[ast.expr]] = {name: [] for name in annotations}
    for node in _in_order(n for n in ast.walk(facts.function) if isinstance(n, ast.Name)):
        places.setdefault(node.id, []).append(node)
    for name, nodes in places.items():
        if nodes and not (name == "self" and name in annotations):
            annotation = annotations.get(name)
            declared = f"{ast.unparse(annotation)}; " if annotation is not None else ""
            known = _joined(facts, nodes)
            if known or declared:
                yield Known(name, (declared + known).rstrip("; "))


def _state(facts: FunctionFacts) -> Iterator[Known]:
    """The attributes of `self` that are read."""
    places: dict[str, list[ast.expr]] = {}
    for node in _in_order(n for n in ast.walk(facts.function) if isinstance(n, ast.Attribute)):
        if isinstance(node.ctx, ast.Load) and isinstance(node.value, ast.Name) and node.value.id == "self":
            places.setdefault(f"self.{node.attr}", []).append(node)
    for name, nodes in places.items():
        yield Known(name, _joined(facts, nodes) or "not known")


E = TypeVar("E", bound=ast.expr)


def _in_order(nodes: Iterable[E]) -> list[E]:
    return sorted(nodes, key=lambda n: (n.lineno, n.col_offset))


def _joined(facts: FunctionFacts, nodes: Iterable[ast.expr]) -> str:
    constants = (node.value for node in ast.walk(facts.function) if isinstance(node, ast.Constant))
    own = frozenset(value for value in constants if isinstance(value, str | bytes))
    return described(join_all([facts.value(node) for node in nodes]), own)[:_LONGEST]


def _callees(facts: FunctionFacts) -> Iterator[Signature]:
    """Functions, methods and modules of the project that are called: their heads and docstrings, not their bodies."""
    seen: set[str] = set()
    for node in _in_order(n for n in ast.walk(facts.function) if isinstance(n, ast.Call)):
        for info in _definitions(facts.value(node.func)):
            head = _head(info)
            if head not in seen:
                seen.add(head)
                yield Signature(
                    head, ast.get_docstring(info.node) or "" if not isinstance(info.node, ast.Lambda) else ""
                )


def _definitions(value: Value) -> Iterator[FunctionInfo]:
    if isinstance(value, Function):
        yield value.info
    elif isinstance(value, Instance):
        forward = value.info.methods.get("forward") or value.info.methods.get("__call__")
        if forward is not None:
            yield forward
    elif isinstance(value, Choice):
        for option in value.options:
            yield from _definitions(option)


def _head(info: FunctionInfo) -> str:
    node = info.node
    if isinstance(node, ast.Lambda):
        return ast.unparse(node)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    return f"def {info.qualname}({ast.unparse(node.args)}){returns}"


def described(value: Value, own: Collection[str | bytes], depth: int = 0) -> str:
    """What is known of a value in words: `tensor of rank 2, dtype int64`; empty where nothing is.

    A text that comes from outside of the function may be a secret: those in `own` are told, of others the type.
    """
    match value:
        case Tensor():
            parts = [f"rank {value.rank}"] if value.rank is not None else []
            kind = value.dtype if isinstance(value.dtype, str) else dtype_kind(value.dtype)
            parts += [f"dtype {kind}"] if kind is not None else []
            word = "NumPy array that is traced as a tensor" if value.ndarray else "tensor"
            return f"{word} of {', '.join(parts)}" if parts else word
        case Scalar():
            return f"Python {value.type or 'number'} taken out of a tensor"
        case Const():
            is_told = _is_told(value.value, own)
            return f"the constant {value.value!r}" if is_told else f"a constant {type(value.value).__name__}"
        case Static():
            return f"{value.type or 'value'} that is known while tracing"
        case Record():
            return f"{value.info.name} of {_fields(value, own, depth)}"
        case Container():
            inner = described(value.element, own, depth + 1) if depth < _DEEPEST else ""
            return f"{value.kind} of {inner}" if inner else value.kind
        case Instance():
            return f"instance of {value.info.name}"
        case Class():
            return f"the class {value.info.name}"
        case Function():
            return f"the function {value.info.qualname}"
        case ExternalName():
            return value.name
        case ExternalInstance():
            return f"instance of {value.cls}"
        case Choice():
            each = [described(option, own, depth + 1) for option in value.options]
            return " or ".join(dict.fromkeys(e for e in each if e)) if all(each) else ""
    return ""


def _is_told(constant: object, own: Collection[str | bytes]) -> bool:
    if isinstance(constant, tuple | frozenset):
        return all(_is_told(each, own) for each in constant)
    return constant in own if isinstance(constant, str | bytes) else True


def _fields(record: Record, own: Collection[str | bytes], depth: int) -> str:
    if depth >= _DEEPEST or not record.fields:
        return "fields that are not known"
    return ", ".join(f"{name}: {described(v, own, depth + 1) or 'not known'}" for name, v in record.fields.items())
