"""String templates: an f-string as the template and the arguments of `str.format`."""

from __future__ import annotations

import ast


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


def quoted(text: str) -> str:
    """A string literal, in double quotes where that takes no more escapes."""
    single = repr(text)
    if single.startswith("'") and '"' not in text:
        return f'"{single[1:-1]}"'
    return single
