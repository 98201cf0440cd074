"""What an unsafe mend may change: which kinds of difference, as mends name them, admit which observed ones.

This is the only file to adapt where the kinds change.
"""

from __future__ import annotations

from collections.abc import Iterable

from graphmend.transforms.fix import Fix

#: the kinds that a mend may name, each with the observed differences that it admits (see `judge`)
ADMITS: dict[str, tuple[str, ...]] = {
    "rounding": ("*.rounding",),
    "precision": ("*.rounding", "*.data", "*.dtype"),
    "dtype": ("*.dtype", "*.data", "*.rounding", "raised"),
    "shape": ("*.shape", "*.stride", "raised"),
    "type": ("*.kind", "*.type", "*.dtype", "stdout", "stderr", "logs"),
    "aliasing": ("*.alias", "*.stride", "*.data", "*.rounding"),
    "gradients": ("grads.*", "*.requires_grad"),
    "exceptions": ("raised", "value.*", "grads.*", "inputs.*", "state.*", "stdout", "stderr", "logs", "warnings"),
    "output": ("stdout", "stderr", "logs", "warnings"),
    "warnings": ("warnings",),
    "random": ("rng", "*.data", "*.rounding"),
    "state": ("state.*",),
}


def unnamed(observed: Iterable[str], fixes: Iterable[Fix]) -> list[str]:
    """The observed differences that no mend names. None where the mends do not name kinds at all."""
    named = [d for fix in fixes for d in getattr(fix, "differences", ())]
    if not all(hasattr(d, "kind") for d in named) or not any(hasattr(fix, "differences") for fix in fixes):
        return []
    admitted = {pattern for d in named for pattern in ADMITS.get(d.kind, ())}
    return [what for what in observed if not any(_matches(what, pattern) for pattern in admitted)]


def _matches(what: str, pattern: str) -> bool:
    where, _, field = what.partition(" ")[0].rpartition(".")
    wanted_where, _, wanted_field = pattern.rpartition(".")
    if not wanted_where:
        return field == pattern
    return bool(where) and wanted_where in ("*", where) and wanted_field in ("*", field)
