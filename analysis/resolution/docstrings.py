"""Parameters that a docstring says are tensors, in the three styles that are in use: Google's, NumPy's and Sphinx'."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.evidence import DeclaredEvidence
from graphmend.analysis.lattice.values import Tensor

if TYPE_CHECKING:
    from graphmend.analysis.program.definitions import FunctionInfo

#: `torch.Tensor`, `:class:`~torch.Tensor``, `LongTensor of shape (n, 2)`, `Tensor[n, 2]`, `tensor, optional`; not prose
#: (`tensor dimension`), nor several (`Tensor[]`, `tensor(s)`)
_TENSOR = re.compile(
    r"[\s`~*]*(?::(?:py:)?(?:class|obj|attr):`~?)?(?:torch\.)?(?:(?:Float|Double|Half|Long|Int|Bool)?Tensor|tensor)\b"
    r"[`*]*\s*(?:\.?\s*$|,|\((?!e?s\))|\[(?!\s*\])|(?:of|with)\b)"
)
#: what else a parameter may be, by the words of its type; a second type behind a comma makes it a tuple
_ALSO = re.compile(
    r",[\s`~]*(?:\S*[.~])?[A-Za-z]*Tensor\b|"
    r"\b(?:or|and|list|tuple|sequence|dict|int|float|bool|str|scalar|number|None|np|numpy|ndarray|array)\b|\||Union"
)


def documented(info: FunctionInfo, name: str) -> Tensor | None:
    """A Tensor, if the docstring of a function says that parameter `name` is one and nothing else."""
    node = info.node
    first = node.body[0] if not isinstance(node, ast.Lambda) else None
    if not isinstance(first, ast.Expr) or not isinstance(first.value, ast.Constant):
        return None
    text = first.value.value
    if not isinstance(text, str) or "ensor" not in text or name not in text:
        return None
    of = _type_of(text, name)
    if of is None or _TENSOR.match(of) is None or _ALSO.search(_without_details(of)) is not None:
        return None
    says = f"is documented as a Tensor in {info.qualname}"
    origin = DeclaredEvidence(says, name, (info.module.name, info.qualname))
    return Tensor(origin, None, ("dtype", name), ("shape", name), graph_input=True)


def _type_of(text: str, name: str) -> str | None:
    """What a docstring gives as the type of a parameter."""
    own = re.escape(name)
    for pattern in (
        rf"^[ \t]*\*{{0,2}}{own}[ \t]*\((?P<type>[^\n]*?)\)[ \t]*:",  # Google: `x (Tensor): the input`
        rf"^[ \t]*{own}[ \t]*:[ \t]*(?P<type>[^\n]*)$",  # NumPy: `x : Tensor`
        rf":type[ \t]+{own}:[ \t]*(?P<type>[^\n]*)",  # Sphinx
        rf":param[ \t]+(?P<type>[^\n:]+?)[ \t]+{own}:",
    ):
        found = re.search(pattern, text, re.MULTILINE)
        if found is not None:
            return found["type"]
    return None


#: `(batch, list)` of a shape, `of dtype int`, `defaults to None`; `(or list)` is no detail
_DETAIL = re.compile(
    r"\((?!\s*or\b)[^()\[\]]*\)|\[[^()\[\]]*\]|\bof\s+(?:(?:d?type)\s+)?`?(?:int|float|bool)\b|\bdefault\w*[^,]*"
)


def _without_details(of: str) -> str:
    """A type without what it says of shapes, of elements and of the default."""
    found = 1
    while found:  # brackets in brackets
        of, found = _DETAIL.subn(" ", of)
    return of
