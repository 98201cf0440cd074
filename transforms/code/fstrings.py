"""String templates: an f-string as the template and the arguments of `str.format`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


def template(node: ast.JoinedStr | ast.Constant) -> tuple[str, list[ast.expr]]:
    """The `str.format` template of a string, with the values that it is filled with, in order."""
    pieces: list[str] = []
    values: list[ast.expr] = []
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    for part in parts:
        if isinstance(part, ast.FormattedValue):
            values.append(part.value)
            spec = ""
            if isinstance(part.format_spec, ast.JoinedStr):
                spec, inner = template(part.format_spec)
                values += inner
            conversion = f"!{chr(part.conversion)}" if part.conversion != -1 else ""
            pieces.append(f"{{{conversion}{':' + spec if spec else ''}}}")
        elif isinstance(part, ast.Constant):
            pieces.append(str(part.value).replace("{", "{{").replace("}", "}}"))
    return "".join(pieces), values


def written_out(facts: FunctionFacts, node: ast.AST) -> ast.expr | None:
    """The expression around a node that an f-string writes as it is spelled, besides its value: `f"{x + 1 = }"`."""
    child: ast.AST = node
    for above in facts.ancestors(node):
        if isinstance(above, ast.stmt):
            return None
        if isinstance(above, ast.FormattedValue) and isinstance(whole := facts.parent(above), ast.JoinedStr):
            place = whole.values.index(above)
            before = whole.values[place - 1] if place else None
            text = str(before.value).rstrip() if isinstance(before, ast.Constant) else ""
            spelled = _bare(text.removesuffix("=")).endswith(_bare(ast.unparse(above.value)))
            if text.endswith("=") and spelled and isinstance(child, ast.expr):
                return child
        child = above
    return None


def _bare(text: str) -> str:
    return re.sub(r"[\s()\"']", "", text)


def quoted(text: str) -> str:
    """A string literal, in double quotes where that takes no more escapes."""
    single = repr(text)
    if single.startswith("'") and '"' not in text:
        return f'"{single[1:-1]}"'
    return single


def number_in(text: ast.JoinedStr, written: object) -> int | None:
    """The whole number that stands in a text where an f-string computes its only part; None where none does."""
    places = [place for place, value in enumerate(text.values) if isinstance(value, ast.FormattedValue)]
    if len(places) != 1 or not isinstance(written, str):
        return None
    parts = [str(value.value) if isinstance(value, ast.Constant) else "" for value in text.values]
    before, behind = "".join(parts[: places[0]]), "".join(parts[places[0] :])
    middle = written.removeprefix(before).removesuffix(behind)
    if before + middle + behind != written or not middle.removeprefix("-").isdecimal():
        return None
    return int(middle) if str(int(middle)) == middle else None
