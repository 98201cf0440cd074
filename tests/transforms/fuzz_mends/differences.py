"""What an unsafe mend may change: which kinds of difference, as mends name them, admit which observed ones.

This is the only file to adapt where the kinds change.
"""

from __future__ import annotations

from collections.abc import Iterable

from graphmend.transforms.fix import DifferenceKind, Fix

#: the kinds that a mend may name, each with the observed differences that it admits (see `judge`)
ADMITS: dict[DifferenceKind, tuple[str, ...]] = {
    "rounding": ("*.rounding", "*.data", "*.dtype"),
    "dtype": ("*.dtype", "*.data", "*.rounding", "raised"),
    "shape": ("*.shape", "*.stride", "*.data", "raised"),
    "strides": ("*.stride",),
    "aliasing": ("*.alias", "*.stride", "*.data", "*.rounding"),
    "type": ("*.kind", "*.type", "*.dtype", "stdout", "stderr", "logs"),
    "exception": ("raised", "value.*", "grads.*", "inputs.*", "state.*", "stdout", "stderr", "logs", "warnings"),
    "gradients": ("grads.*", "*.requires_grad"),
    "zero-gradients": ("grads.*", "*.requires_grad"),
    "evaluation": (),
    "random": ("rng", "*.data", "*.rounding"),
    "output": ("stdout", "stderr", "logs", "warnings"),
    "output-order": ("stdout", "stderr", "logs", "warnings"),
    "state": ("state.*",),
    "specialised": (),
    "private": (),
}


def unnamed(observed: Iterable[str], fixes: Iterable[Fix]) -> list[str]:
    """The observed differences that no mend names."""
    named = [difference for fix in fixes for difference in fix.differences]
    admitted = {pattern for difference in named for pattern in ADMITS[difference.kind]}
    return [what for what in observed if not any(_matches(what, pattern) for pattern in admitted)]


def _matches(what: str, pattern: str) -> bool:
    where, _, field = what.partition(" ")[0].rpartition(".")
    wanted_where, _, wanted_field = pattern.rpartition(".")
    if not wanted_where:
        return field == pattern
    return bool(where) and wanted_where in ("*", where) and wanted_field in ("*", field)
