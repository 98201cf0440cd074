"""Where imports that mending added stand, in the order of the file's own; and `from graphmend.runtime import emit` in
place of `graphmend.runtime.emit` at each use.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Sequence

from graphmend.analysis.syntax.source import Source
from graphmend.analysis.syntax.span import Span
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.text_edits import apply
from graphmend.transforms.fix import TextEdit

_RUNTIME = "graphmend.runtime"
Import = ast.Import | ast.ImportFrom


def in_order(before: Source, after: Source) -> str:
    """`after` with the imports that mending added where a sorter puts them. Names of the runtime are imported one by
    one, where they are free.
    """
    seen = {after.text}  # two that are moved in turn would be moved for ever
    while (moved := _standard_moved(before, after)) is not None and moved not in seen:
        seen.add(moved)
        after = Source(moved, after.path)
    return _with_names(before, after)


def _standard_moved(before: Source, after: Source) -> str | None:
    """The text with an import of the standard library moved that stands with other people's packages."""
    if before.tree is None or after.tree is None:
        return None
    had = {alias.name for node in nodes_in(before.tree) if isinstance(node, ast.Import) for alias in node.names}
    for group in _groups(after):
        mixed = any(not _is_standard(each) for each in group)
        for each in group if mixed else ():
            if isinstance(each, ast.Import) and _is_standard(each) and not had.intersection(_modules(each)):
                return _inserted(Source(_without(after, each), after.path), ast.unparse(each), after.text)
    return None


def _with_names(before: Source, after: Source) -> str:
    if before.tree is None or after.tree is None or (added := _added(before.tree, after.tree)) is None:
        return after.text
    uses = list(_uses(after.tree))
    names = {use.attr for use in uses}
    known = _known(after.tree)
    rest = Source(_without(after, added), after.path)
    if rest.tree is None:
        return after.text
    if not _are_free(after.tree, names - {alias.name for alias in known.names} if known else names, len(uses)):
        return _inserted(rest, f"import {_RUNTIME}", after.text)
    edits = [TextEdit(after.span(use), use.attr) for use in uses]
    if known is not None:
        gone = _read(before.tree) - _read(after.tree)
        every = sorted({*names, *(alias.name for alias in known.names if alias.name not in gone)})
        edits += [TextEdit(after.span(known), f"from {_RUNTIME} import {', '.join(every)}")]
        return Source(_without(after, added, edits), after.path).text
    named = Source(_without(after, added, edits), after.path)
    new = f"from {_RUNTIME} import {', '.join(sorted(names))}"
    in_place = apply(after.text, [*edits, TextEdit(after.span(added), new)], after)
    return _inserted(named, new, in_place)


def _added(before: ast.Module, after: ast.Module) -> ast.Import | None:
    """The import that mending added."""
    had = any(_is_plain(node) for node in nodes_in(before))
    found = [node for node in after.body if _is_plain(node)]
    return found[0] if len(found) == 1 and not had and isinstance(found[0], ast.Import) else None


def _is_plain(node: ast.AST) -> bool:
    return isinstance(node, ast.Import) and [(a.name, a.asname) for a in node.names] == [(_RUNTIME, None)]


def _uses(tree: ast.AST) -> Iterator[ast.Attribute]:
    for node in nodes_in(tree):
        match node:
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id="graphmend"), attr="runtime")):
                yield node


def _read(tree: ast.AST) -> set[str]:
    """The names that a text reads, and those that it may mean in strings (`__all__`)."""
    texts = (node.value for node in nodes_in(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return {node.id for node in nodes_in(tree) if isinstance(node, ast.Name)}.union(texts)


def _known(tree: ast.Module) -> ast.ImportFrom | None:
    """The file's own import of names of the runtime."""
    found = (node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == _RUNTIME)
    return next(
        (node for node in found if not node.level and not any(a.asname or a.name == "*" for a in node.names)), None
    )


def _are_free(tree: ast.Module, names: set[str], uses: int) -> bool:
    """Whether nothing in a file has one of these names, and `graphmend` itself stands in those uses only."""
    package = 0
    for node in nodes_in(tree):
        match node:
            case ast.Name(id=name):
                package += name == "graphmend"
                if name in names:
                    return False
            case (
                ast.arg(arg=name)
                | ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
                | ast.ExceptHandler(name=name)
                | ast.MatchAs(name=name)
                | ast.MatchStar(name=name)
                | ast.MatchMapping(rest=name)
            ) if name in names:
                return False
            case ast.alias(name=name, asname=bound):
                if name == "*" or (bound or name.partition(".")[0]) in names:
                    return False
    return package == uses


def _without(source: Source, statement: ast.stmt, edits: Sequence[TextEdit] = ()) -> str:
    """The text without the line of a statement."""
    line = statement.lineno
    return apply(source.text, [*edits, TextEdit(Span(line, 0, line + 1, 0), "")], source)


def _inserted(source: Source, text: str, otherwise: str) -> str:
    """The text with an import put where the order of the file's imports wants it."""
    if source.tree is None:
        return otherwise
    newline = "\r\n" if "\r\n" in source.text else "\n"
    groups = _groups(source)
    new = ast.parse(text).body[0]
    assert isinstance(new, (ast.Import, ast.ImportFrom))
    own = _is_standard(new)
    if (group := _home(groups, (_is_standard_alone,) if own else (_is_torch, _is_foreign))) is not None:
        key = _order(group)
        at = next((i for i, each in enumerate(group) if key is not None and key(each) > key(new)), len(group))
        line = group[at].lineno if at < len(group) else (group[-1].end_lineno or group[-1].lineno) + 1
        return apply(source.text, [_at(source, line, text, newline)], source)
    if own and groups:
        return apply(source.text, [_at(source, groups[0][0].lineno, text + newline, newline)], source)
    standard = [group for group in groups if all(_is_standard(each) for each in group)]
    if standard:
        line = (standard[-1][-1].end_lineno or standard[-1][-1].lineno) + 1
        return apply(source.text, [_at(source, line, newline + text, newline)], source)
    return otherwise


def _at(source: Source, line: int, text: str, newline: str) -> TextEdit:
    if line > len(source.lines):  # the file ends without a line end
        last = len(source.lines)
        end = len(source.lines.line(last - 1))
        return TextEdit(Span(last, end, last, end), newline + text)
    return TextEdit(Span(line, 0, line, 0), text + newline)


def _groups(source: Source) -> list[list[Import]]:
    """The imports at the top of a file, where each has its lines to itself, divided by what stands between them."""
    assert source.tree is not None
    groups: list[list[Import]] = []
    last = 0
    for number, statement in enumerate(source.tree.body):
        if number == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue
        if not isinstance(statement, (ast.Import, ast.ImportFrom)) or statement.lineno <= last:
            break
        if not groups or statement.lineno != last + 1:
            groups.append([])
        groups[-1].append(statement)
        last = statement.end_lineno or statement.lineno
    return groups


def _home(groups: Sequence[list[Import]], kinds: Sequence[Callable[[Import], bool]]) -> list[Import] | None:
    """The first group with an import of the first kind that there is one of."""
    for kind in kinds:
        found = [group for group in groups if any(map(kind, group))]
        if found:
            return found[0]
    return None


def _is_torch(statement: Import) -> bool:
    return any(name.partition(".")[0] == "torch" for name in _modules(statement))


def _is_foreign(statement: Import) -> bool:
    relative = isinstance(statement, ast.ImportFrom) and bool(statement.level)
    return not relative and not _is_standard(statement)


def _is_standard_alone(statement: Import) -> bool:
    return _is_standard(statement) and "__future__" not in _modules(statement)


def _is_standard(statement: Import) -> bool:
    return all(name.partition(".")[0] in sys.stdlib_module_names for name in _modules(statement))


def _modules(statement: Import) -> list[str]:
    if isinstance(statement, ast.ImportFrom):
        return [("." * statement.level) + (statement.module or "")]
    return [alias.name for alias in statement.names]


def _order(group: Sequence[Import]) -> Callable[[Import], tuple[bool, str]] | None:
    """The key by which a group is sorted; None where it is in no order that is known."""
    for key in (_plain_first, _by_module):
        keys = [key(each) for each in group]
        if keys == sorted(keys):
            return key
    return None


def _plain_first(statement: Import) -> tuple[bool, str]:
    return isinstance(statement, ast.ImportFrom), _modules(statement)[0].lower()


def _by_module(statement: Import) -> tuple[bool, str]:
    return False, _modules(statement)[0].lower()
