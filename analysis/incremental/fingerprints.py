"""Fingerprints: the part of a definition that other code depends on, compared before and after an edit."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import NamedTuple

from graphmend.analysis.incremental.sections import Outside
from graphmend.analysis.program.definitions import ClassInfo
from graphmend.analysis.region.dynamo_config import says_what_is_traced
from graphmend.analysis.syntax.nodes import DEFINITIONS, is_stub, says_global
from graphmend.analysis.syntax.traversal import statements


class Fingerprint(NamedTuple):
    """What other code depends on in a function; texts with equal fingerprints differ in the body only."""

    head: str
    """Its name and decorators, and whether it is a stub."""
    signature: str
    """Its parameters and annotations."""


def fingerprint(node: ast.AST) -> Fingerprint:
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    decorators = " ".join(ast.dump(decorator) for decorator in node.decorator_list)
    head = f"{type(node).__name__} {node.name} {is_stub(node)} {decorators}"
    return Fingerprint(head, f"{ast.dump(node.args)} {ast.dump(node.returns) if node.returns is not None else ''}")


def attribute_writers(owner: ClassInfo, name: str) -> tuple[set[str], bool]:
    """The methods that assign an attribute, and whether one registers it."""
    return {method.name for method, _, _ in owner.assigned.get(name, ())}, name in owner.registered


def has_global_effect(text: str, nodes: Iterable[ast.AST]) -> bool:
    """Whether a section may say what is compiled, or assign globals: effects that are not followed edit by edit."""
    if says_what_is_traced(text):
        return True
    return says_global(text) and any(isinstance(inner, ast.Global) for node in nodes for inner in statements(node))


def defines(owner: ClassInfo | None, statement: ast.stmt) -> bool:
    """Whether a statement between functions holds definitions that are no section of their own."""
    if owner is None and isinstance(statement, ast.ClassDef):
        return False  # what its body holds is listed by itself
    return any(isinstance(node, DEFINITIONS) for node in ast.walk(statement))


def class_head(node: ast.ClassDef) -> list[str]:
    """The bases, keywords and decorators of a class."""
    return [ast.dump(part) for part in (*node.bases, *node.keywords, *node.decorator_list)]


def differing(old: list[Outside], new: list[Outside]) -> tuple[list[Outside], list[Outside]]:
    """The statements of two lists that differ: without their equal beginning and end."""
    before, after = [[(owner, _text_of(s)) for owner, s in one] for one in (old, new)]
    first = 0
    while first < min(len(before), len(after)) and before[first] == after[first]:
        first += 1
    last = 0
    while last < min(len(before), len(after)) - first and before[-1 - last] == after[-1 - last]:
        last += 1
    return old[first : len(old) - last], new[first : len(new) - last]


def _text_of(statement: ast.stmt) -> str:
    return statement.name if isinstance(statement, ast.ClassDef) else ast.dump(statement)
