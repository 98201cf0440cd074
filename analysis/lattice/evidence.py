"""Evidence: why a value is a tensor, as a chain of sentences from an expression back to a first cause."""

from __future__ import annotations

import ast


class Evidence:
    """One link of the evidence: a sentence about `node`, and the link it follows from."""

    __slots__ = ("node", "parent", "says")

    def __init__(self, says: str, node: ast.AST | str, parent: Evidence | None = None) -> None:
        self.says = says
        self.node = node
        self.parent = parent

    def chain(self) -> list[str]:
        """The sentences, from the first cause to this one."""
        links: list[str] = []
        link: Evidence | None = self
        while link is not None and len(links) < 12:
            text = link.node if isinstance(link.node, str) else ast.unparse(link.node)
            text = " ".join(text.split())
            links.append(f"{text if len(text) <= 60 else text[:57] + '...'} {link.says}")
            link = link.parent
        return links[::-1]

    @property
    def first(self) -> Evidence:
        """The link that all others follow from."""
        link = self
        while link.parent is not None:
            link = link.parent
        return link


class DeclaredEvidence(Evidence):
    """A first link that rests on a declaration, or on how a parameter is used: parameter `node` of the function `where`
    (module, qualified name). Known calls may contradict it."""

    __slots__ = ("where",)

    def __init__(self, says: str, node: str, where: tuple[str, str]) -> None:
        super().__init__(says, node)
        self.where = where
