"""What the text of a module says of names, beyond its definitions: which it binds somewhere, and which it switches."""

from __future__ import annotations

import ast
from collections import Counter
from typing import Protocol

from graphmend.analysis.syntax.scopes import BINDS_UNSEEN, bound_in


class SwitchedNames(Protocol):
    """The names of attributes that a text sets to another value than False."""

    def __contains__(self, name: str, /) -> bool: ...


class BoundNames:
    """How many places of a module bind a name, in any scope. They are counted when the first name is asked for that is
    no definition of the top level, in the tree that was parsed first; edits are added to that."""

    def __init__(self) -> None:
        self._counted: Counter[str] | None = None
        self._edited: Counter[str] = Counter()
        self._unseen = False
        """Whether the text may bind names out of sight."""
        self._asked: set[str] = set()

    def may_bind(self, name: str, tree: ast.Module | None, text: str) -> bool:
        """Whether some scope binds a name, or may do so out of sight."""
        self._asked.add(name)
        if self._counted is None:
            self._unseen = tree is None or any(word in text for word in BINDS_UNSEEN)
            self._counted = bound_in(tree) if tree is not None else Counter()
        return self._unseen or self._counted["*"] > 0 or self._counted[name] + self._edited[name] > 0

    def changed(self, old: str, before: list[ast.AST], new: str, now: list[ast.AST]) -> bool:
        """Take an edit of a part of the text over: whether an answer that was given may be another one now."""
        difference = bound_in(*now)
        difference.subtract(bound_in(*before))
        self._edited.update(difference)
        if any((word in old) != (word in new) for word in BINDS_UNSEEN):
            return True
        return any(count and name in self._asked for name, count in difference.items())
