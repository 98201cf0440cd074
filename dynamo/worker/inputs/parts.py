"""Modules that a constructor is given: `Seq2Seq(encoder, decoder)`, whose classes stand in the same file."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from functools import lru_cache
from types import ModuleType

import torch


def is_called(cls: type, name: str) -> bool:
    """Does a class keep a parameter under its own name and call it, or a method of it?"""
    text = _text(cls)
    kept = re.search(rf"\bself\.{name}\s*=\s*{name}\b", text)
    return kept is not None and re.search(rf"\bself\.{name}(\.\w+)?\(", text) is not None


@lru_cache(maxsize=256)
def _text(cls: type) -> str:
    try:
        return textwrap.dedent(inspect.getsource(cls))
    except (OSError, TypeError):
        return ""


def _arguments(cls: type, name: str) -> int | None:
    """With how many arguments a class calls what it keeps; None where it does not, or says so with `*`."""
    try:
        calls = [n for n in ast.walk(ast.parse(_text(cls))) if isinstance(n, ast.Call)]
    except SyntaxError:
        return None
    for call in calls:
        if ast.unparse(call.func) == f"self.{name}" and not any(isinstance(a, ast.Starred) for a in call.args):
            return len(call.args) + len(call.keywords)
    return None


def class_of(name: str, cls: type, module: ModuleType) -> type | None:
    """The class of modules in the file whose name is that of a parameter, or has it in it, the shortest; else the last
    one in front that takes as many arguments. One that is given another of its own kind is none.
    """
    wanted = re.sub(r"_(net|model|module|layer|block)$", "", name).replace("_", "").lower()
    found: list[tuple[tuple[bool, bool, int], type]] = []
    others: list[type] = []
    for other, value in vars(module).items():
        own = isinstance(value, type) and issubclass(value, torch.nn.Module) and value.__module__ == module.__name__
        if own and not issubclass(cls, value) and not issubclass(value, cls):
            said = other.replace("_", "").lower()
            rank = (said != wanted, not said.endswith(wanted), len(said))
            if wanted and wanted in said:
                found.append((rank, value))
            others.append(value)
    if found:
        return min(found, key=lambda each: each[0])[1]
    number = _arguments(cls, name)
    fitting = [other for other in others if number is not None and number > 1 and _takes(other, number)]
    return fitting[-1] if fitting else None


def _takes(cls: type, number: int) -> bool:
    parameters = list(inspect.signature(cls.forward).parameters.values())[1:]  # type: ignore[attr-defined]
    named = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return sum(p.default is p.empty for p in named) <= number <= len(named)
