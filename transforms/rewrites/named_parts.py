"""Parts of new text that would stand in it more than once: they are written once, under names, in front of it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.source import Source
from graphmend.transforms.code.expression_text import parses
from graphmend.transforms.code.liveness import fresh
from graphmend.transforms.code.positions import begins_line
from graphmend.transforms.code.text_edits import insert_before
from graphmend.transforms.legality.effects import effects

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.transforms.fix import TextEdit

_BRANCHING = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.NamedExpr)
_LOOPING = (ast.comprehension, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def late(facts: FunctionFacts, node: ast.expr) -> str | None:
    """Why an expression cannot be evaluated in front of its statement; None where it can."""
    child: ast.AST = node
    for above in facts.ancestors(node):
        if isinstance(above, ast.stmt):
            simple = isinstance(above, (ast.Return, ast.Assign, ast.AnnAssign, ast.Expr))
            head = isinstance(above, ast.If) and above.test is child
            return None if simple or head else "the statement evaluates it again, or not always"
        if isinstance(above, (*_BRANCHING, *_LOOPING)):
            return "it is not evaluated always, or not first"
        beside = [n.value if isinstance(n, ast.keyword) else n for n in ast.iter_child_nodes(above) if n is not child]
        if found := effects(facts, *(n for n in beside if isinstance(n, ast.expr))):
            return f"{found[0]}, and would come later"
        child = above
    return None


def named(
    facts: FunctionFacts, texts: Mapping[ast.expr, str], parts: Mapping[str, str]
) -> tuple[list[TextEdit], dict[ast.expr, str]]:
    """What gives names to the parts that occur more than once in new texts, in front of their statement, and the texts
    with these names. `parts` are texts that may stand in the new ones, each with the name that it is to have.
    """
    statements = {next(n for n in facts.ancestors(node) if isinstance(n, ast.stmt)) for node in texts}
    statement = next(iter(statements))
    alone = len(statements) == 1 and not isinstance(statement, ast.If) and begins_line(facts.source, statement)
    if not alone or any(late(facts, node) is not None for node in texts):
        return [], dict(texts)
    every = list(texts.values())
    made: list[tuple[str, str]] = []
    for part in sorted(parts, key=len, reverse=True):  # what stands inside of others gets its name behind them
        shape = _shape(part)
        if part.isidentifier() or sum(_count(text, shape) for text in (*every, *(text for _, text in made))) < 2:
            continue
        name = fresh(facts, parts[part], [name for name, _ in made])
        every = [_with(text, shape, name) for text in every]
        made = [(name, part), *((other, _with(text, shape, name)) for other, text in made)]
    lines = "".join(f"{name} = {_line(text)}\n" for name, text in made)
    edits = [insert_before(facts.source, statement, lines)] if made else []
    return edits, dict(zip(texts, every, strict=True))


def bare(text: str) -> str:
    """The text of an expression without brackets around all of it, where it needs none."""
    return text[1:-1] if text.startswith("(") and parses(text[1:-1]) and _shape(text[1:-1]) == _shape(text) else text


def _line(text: str) -> str:
    """The text of an expression for the right side of an assignment."""
    text = bare(text)
    return text if parses(text) else f"({text})"


def _shape(text: str) -> str:
    return ast.dump(ast.parse(f"({text})", mode="eval"))


def _count(text: str, shape: str) -> int:
    return len(_found(Source(f"({text})"), shape))


def _with(text: str, shape: str, name: str) -> str:
    """A text in which a name stands for an expression of this shape, without the brackets around it."""
    source = Source(f"({text})")
    spans = [source.span(node) for node in _found(source, shape)]
    offset = source.lines.offset
    for span in sorted(spans, reverse=True):
        start, end = offset(span.line - 1, span.column), offset(span.end_line - 1, span.end_column)
        before, behind = _unbracketed(text[: start - 1], name, text[end - 1 :])
        text = f"{before}{name}{behind}"
    return text


def _unbracketed(before: str, name: str, behind: str) -> tuple[str, str]:
    """What stands around a name, without brackets that hold nothing else: those of a call or next to a word stay."""
    shape = _shape(f"{before}{name}{behind}")
    while (left := before.rstrip()).endswith("(") and (right := behind.lstrip()).startswith(")"):
        without = left[:-1], right[1:]
        if not parses(f"({name.join(without)})") or _shape(name.join(without)) != shape:
            break
        before, behind = without
    return before, behind


def _found(source: Source, shape: str) -> list[ast.expr]:
    """The expressions of a shape, but for those in a string, and where names may be bound to something else."""
    found: list[ast.expr] = []
    rest: list[ast.AST] = [source.tree] if source.tree is not None else []
    while rest:
        node = rest.pop()
        of_kind = shape.startswith(f"Expression(body={type(node).__name__}(")  # to look at each is slow
        if of_kind and isinstance(node, ast.expr) and ast.dump(ast.Expression(node)) == shape:
            found.append(node)
        elif not isinstance(node, (ast.JoinedStr, ast.Lambda, *_LOOPING)):
            rest += ast.iter_child_nodes(node)
    return found
