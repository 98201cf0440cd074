"""What a generated program has in reach at one place: names by what they hold."""

from __future__ import annotations

from dataclasses import dataclass, field

#: the names that a kind of value is given
POOLS = {
    "tensor": "y z h u w",
    "part": "v p g",
    "mask": "m q keep condition",
    "scalar": "s t total stopped",
    "number": "a b c",
    "count": "n r",
    "flag": "done found",
    "list": "parts seen_here",
    "maybe": "extra aux",
    "rows": "rows at",
    "label": "text note",
}


@dataclass
class Scope:
    """Names that are certainly bound, each with its kind, in the order of their binding."""

    kinds: dict[str, str] = field(default_factory=dict)

    def of(self, *kinds: str) -> list[str]:
        return [name for name, kind in self.kinds.items() if kind in kinds]

    def bind(self, name: str, kind: str) -> None:
        self.kinds.pop(name, None)
        self.kinds[name] = kind

    def inner(self) -> Scope:
        """For a block, whose new names are not known behind it."""
        return Scope(dict(self.kinds))
