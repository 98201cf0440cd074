"""Classes of the file for which torch's operations do something else."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.analysis.torch_facts import load
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_OVERLOADS = ("__torch_function__", "__torch_dispatch__")
_OF_TENSORS = re.compile(r"(?m)^\s*class \w+\(.*\b(?:Tensor|Parameter)\b")
#: special methods that no operation calls
_APART = frozenset("__init__ __new__ __init_subclass__ __class_getitem__ __repr__ __str__ __del__".split())


@answers("context")
def overloading(facts: FunctionFacts) -> str | None:
    """A class of the file, of tensors or a mode, for which torch's operations do something else: it says what they do,
    or has a method in the place of one that tensors have.
    """
    tree, text = facts.source.tree, facts.source.text
    if tree is None or not (any(name in text for name in _OVERLOADS) or _OF_TENSORS.search(text)):
        return None
    of_tensors = {"Tensor", "Parameter"}
    for cls in (n for n in nodes_in(tree) if isinstance(n, ast.ClassDef)):
        derived = any(_last(base) in of_tensors for base in cls.bases)
        of_tensors |= {cls.name} if derived else set()
        for statement in cls.body:
            name = getattr(statement, "name", None)
            if name in _OVERLOADS or (derived and isinstance(name, str) and _is_of_tensors(facts, name)):
                return cls.name
    return None


def _last(base: ast.expr) -> str:
    return base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")


def _is_of_tensors(facts: FunctionFacts, name: str) -> bool:
    special = name.startswith("__") and name.endswith("__")
    return name not in _APART if special else load(facts.torch_version).has_method(name)
