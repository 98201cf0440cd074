"""The last touch on mended text: names of the runtime are imported, statements of which nothing is left are dropped,
and what mending wrote is folded at the project's line length. Nothing else of the file changes.
"""

from __future__ import annotations

import ast
import difflib
import itertools
from collections.abc import Iterator

from graphmend.analysis.syntax.source import Source
from graphmend.analysis.syntax.span import Span
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.text_edits import alike, apply, lines_of
from graphmend.transforms.fix import TextEdit
from graphmend.transforms.style.folding import fold
from graphmend.transforms.style.imports_in_order import in_order
from graphmend.transforms.style.pieces import NotFoldedError
from graphmend.transforms.style.read_in_place import without_names

_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Assert, ast.Raise)


_HEADED = (ast.If, ast.While, ast.With)


def finished(before: str, after: str, path: str, *, line_length: int, formatted: bool) -> str:
    """`after`, which mending made of `before`, as a person would have written it.

    `line_length` is in characters. Where the project has a formatter (`formatted`), statements over several lines are
    laid out as that does; else only lines that are too long are touched.
    """
    if before == after:
        return after
    after = without_names(before, Source(after, path), _changed(before, after))
    after = _without_idle(before, Source(after, path))
    text = in_order(Source(before, path), Source(after, path))
    source = Source(text, path)
    if source.tree is None:
        return after
    changed = _changed(before, text)
    edits = list(_around_functions(source, source.tree, changed))
    for node in nodes_in(source.tree):
        if isinstance(node, _SIMPLE) and not changed.isdisjoint(range(node.lineno, (node.end_lineno or 0) + 1)):
            edit = _folded(source, node, line_length, formatted)
            edits += [edit] if edit is not None else []
        elif isinstance(node, _HEADED) and node.lineno in changed:
            edit = _header(source, node, line_length, formatted)
            edits += [edit] if edit is not None else []
    folded = apply(text, edits, source)
    return folded if _means(folded) == _means(text) else text


def _without_idle(before: str, source: Source) -> str:
    """The text without `x = x`, where mending left no more of a statement and the block has another one."""
    if source.tree is None:
        return source.text
    changed = _changed(before, source.text)
    old = Source(before, source.path).tree
    own = {ast.unparse(node) for node in nodes_in(old) if _is_idle(node)} if old is not None else set()
    blocks = (b for node in nodes_in(source.tree) for _, b in ast.iter_fields(node) if isinstance(b, list))
    edits = []
    for block in blocks:
        new = [s for s in block if _is_idle(s) and ast.unparse(s) not in own]
        idle = [s for s in new if s.lineno in changed and _has_its_line(source, s)]
        edits += [TextEdit(Span(s.lineno, 0, s.lineno + 1, 0), "") for s in idle if len(idle) < len(block)]
    return apply(source.text, edits, source)


def _is_idle(node: ast.AST) -> bool:
    match node:
        case ast.Assign(targets=[ast.Name(id=target)], value=ast.Name(id=name)):
            return target == name
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            names = [[n.id for n in part if isinstance(n, ast.Name)] for part in (targets, values)]
            return names[0] == names[1] and len(names[0]) == len(targets) == len(values)
    return False


def _has_its_line(source: Source, node: ast.stmt) -> bool:
    span = source.span(node)
    alone = span.line == span.end_line and source.lines.line(span.line - 1).strip() == source.segment(span)
    return alone and node.lineno < len(source.lines)


def _changed(before: str, after: str) -> set[int]:
    """The lines (from 1) of `after` that `before` does not have."""
    old, new = lines_of(before), lines_of(after)
    head = alike(old, new)
    tail = alike(old[head:][::-1], new[head:][::-1])
    old, new = old[head : len(old) - tail], new[head : len(new) - tail]
    codes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return {head + line + 1 for kind, _, _, begin, end in codes if kind != "equal" for line in range(begin, end)}


def _folded(source: Source, node: ast.stmt, line_length: int, formatted: bool) -> TextEdit | None:
    """The edit that folds a statement; None where it stays as it is."""
    span = source.span(node)
    lines = [source.lines.line(number - 1) for number in range(span.line, span.end_line + 1)]
    long = any(len(line) > line_length for line in lines)
    alone = not lines[0][: span.column].strip(" ") and not lines[-1][span.end_column :].strip()
    value = getattr(node, "value", None)
    bracketed = isinstance(value, ast.expr) and _opens_earlier(source, value)
    if not alone or not (long or bracketed or (formatted and len(lines) > 1)):
        return None
    lines[-1] = lines[-1][: span.end_column]
    lines[0] = lines[0][span.column :]
    try:
        made = fold("\n".join(lines), span.column, line_length)
    except NotFoldedError:
        return None
    return TextEdit(span, ("\r\n" if "\r\n" in source.text else "\n").join(made))


def _header(source: Source, node: ast.If | ast.While | ast.With, line_length: int, formatted: bool) -> TextEdit | None:
    """The edit that folds the one line in front of a block; None where it stays as it is."""
    line = source.lines.line(node.lineno - 1).rstrip()
    column = len(line) - len(line.lstrip())
    value = node.items[0].context_expr if isinstance(node, ast.With) else node.test
    bracketed = formatted and source.span(value).line == node.lineno and _opens_earlier(source, value)
    if node.body[0].lineno == node.lineno or not (len(line) > line_length or bracketed):
        return None
    try:
        ast.parse(line.strip().removeprefix("el") + " pass")
        made = fold(line.strip(), column, line_length)
    except (SyntaxError, NotFoldedError):
        return None
    newline = "\r\n" if "\r\n" in source.text else "\n"
    return TextEdit(Span(node.lineno, column, node.lineno, len(line)), newline.join(made))


def _opens_earlier(source: Source, value: ast.expr) -> bool:
    """Whether a bracket stands right in front of a value that is none of its own."""
    span = source.span(value)
    return source.lines.line(span.line - 1)[: span.column].endswith("(") and not isinstance(value, ast.Tuple)


def _around_functions(source: Source, tree: ast.AST, changed: set[int]) -> Iterator[TextEdit]:
    """Empty lines around functions that mending put inside others."""
    newline = "\r\n" if "\r\n" in source.text else "\n"
    for body in (node.body for node in nodes_in(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))):
        for above, below in itertools.pairwise(body):
            new = (isinstance(s, ast.FunctionDef) and s.lineno in changed for s in (above, below))
            if any(new) and below.lineno == (above.end_lineno or 0) + 1 and not getattr(below, "decorator_list", ()):
                yield TextEdit(Span(below.lineno, 0, below.lineno, 0), newline)


def _means(text: str) -> str | None:
    """What a text means to Python."""
    try:
        return ast.dump(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError):
        return None
