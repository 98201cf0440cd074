"""Whether a text may compile anything, by its words."""

from __future__ import annotations

import re

from graphmend.analysis.driver.frameworks import WORDS

_WORDS = re.compile(r"(?:compile|optimize|optimize_assert|export|explain)\b")
_CALL = re.compile(r"\.compile\(")
_OTHER = re.compile("|".join(map(re.escape, WORDS)))
#: modules with a `compile` of their own
_NO_COMPILER = re.compile(r"(?<!\w)(?:re|regex|_?sre|builtins|jinja2|ast)\.$")


def may_compile(text: str) -> bool:
    """Whether a text may compile anything, by its words: much faster than a look through its syntax tree."""
    if not any(word in text for word in ("compile", "optimize", "export", "explain", "dynamo")):
        return False
    words = _WORDS if "torch" in text else _CALL
    found = any(_compiles(text, match.start(), match.end()) for match in words.finditer(text))
    return found or _OTHER.search(text) is not None


def _compiles(text: str, at: int, end: int) -> bool:
    """Whether a word may refer to a compiling function: an imported name, an attribute, a decorator, a string that
    names it; no comment."""
    at += text[at] == "."
    before = text[text.rfind("\n", 0, at) + 1 : at]
    quoted = before.endswith(('"', "'")) and text[end : end + 1] in ("'", '"')
    if not quoted and not before.endswith((".", "import ", "@", ", ")):
        return False
    return _NO_COMPILER.search(before) is None and not before.lstrip().startswith("#")
