"""Parameters that a docstring says are tensors, in the three styles that are in use: Google's, NumPy's and Sphinx'."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.evidence import DeclaredEvidence
from graphmend.analysis.lattice.values import Tensor

if TYPE_CHECKING:
    from graphmend.analysis.program.definitions import FunctionInfo

#: `torch.Tensor`, `:class:`~torch.Tensor``, `LongTensor of shape (n, 2)`, `tensor, optional`
_TENSOR = re.compile(
    r"[\s`~(\[]*(?::(?:py:)?(?:class|obj|attr):`~?)?(?:torch\.)?(?:(?:Float|Double|Half|Long|Int|Bool)?Tensor|tensor)\b`?"
)
#: what else a parameter may be, by the words of its type
_ALSO = re.compile(
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
    if of is None or _TENSOR.match(of) is None or _ALSO.search(_without_shape(of)) is not None:
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


def _without_shape(of: str) -> str:
    """A type without what it says of shapes: `Tensor of shape (batch, list)`, `Tensor [n, 2]`."""
    return re.split(r"[\[(]|\b(?:of|with|whose|containing|shape|optional|default)\b", of, maxsplit=1)[0]
