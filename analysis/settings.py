"""The user's settings of the analysis. Plain data; read from configuration by other rooms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: codes that rules had before -> those they have
RENAMED = {"GM503": "GM701"}


def current_code(code: str) -> str:
    """The code of a rule today, by the one it is known by."""
    return RENAMED.get(code, code)


@dataclass(frozen=True, slots=True)
class Settings:
    """`select` and `ignore` hold codes or their beginnings (`GM1`); the longer match wins, `ignore` at equal length."""

    select: tuple[str, ...] = ("GM",)
    ignore: tuple[str, ...] = ()
    assume_compiled: Literal["modules", "functions", "never"] = "modules"
    """What counts as compiled without a call in sight: modules and what stands beside them, or also the functions of
    files without modules that take tensors."""
    compiled: tuple[str, ...] = ()
    """Functions, classes, `Class.method`s and objects of the file that are compiled, whatever its text says."""
    torch_version: str | None = None
    """Minor version such as "2.13"; None means the newest known."""
    returns_tensor: tuple[str, ...] = ()
    """Qualified names of callables whose result is a tensor."""
    static: tuple[str, ...] = ()
    """Qualified names whose value is known while tracing."""
    ignore_calls: tuple[str, ...] = ()
    """Qualified names of callables that are known not to break."""

    preview: bool = False
    """Whether preview rules report, too."""

    def tries(self, code: str) -> bool:
        """Whether a preview rule is switched on: by `preview`, or by its whole code in `select`."""
        return self.preview or code in map(current_code, self.select)

    def selects(self, code: str) -> bool:
        chosen = max((len(c) for c in map(current_code, self.select) if code.startswith(c)), default=-1)
        refused = max((len(c) for c in map(current_code, self.ignore) if code.startswith(c)), default=-1)
        return chosen > refused
