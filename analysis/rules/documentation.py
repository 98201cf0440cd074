"""A rule's docstring taken apart: the text under each of its headings."""

from __future__ import annotations

import textwrap

#: the headings of a rule's docstring, in order
HEADINGS = ("What it does", "Why it breaks", "Example", "Use instead", "Mends", "References")

#: sections that hold Python
CODE = frozenset({"Example", "Use instead"})


def sections(docstring: str) -> dict[str, str]:
    """The text under each heading of a docstring. A heading ends with a colon and is not indented."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in docstring.splitlines():
        if line and not line[0].isspace() and line.rstrip().endswith(":"):
            lines = found.setdefault(line.rstrip().removesuffix(":"), [])
        else:
            lines.append(line)
    return {heading: textwrap.dedent("\n".join(text)).strip("\n") for heading, text in found.items()}


def as_markdown(docstring: str) -> str:
    """A docstring with headings, and code as blocks."""
    parts = []
    for heading, text in sections(docstring).items():
        parts.append(f"## {heading}\n\n" + (f"```python\n{text}\n```" if heading in CODE else text))
    return "\n\n".join(parts)
