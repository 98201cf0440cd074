"""What a walk changes for a part of the text alone, and puts back behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphmend.analysis.interpreter.interface import Walk


class Restoring:
    """Restores the situation of a walk at the end of a `with` block and, behind an exception, its environment."""

    __slots__ = ("_blocks", "_conditional", "_env", "_gradients_off", "_silent", "_unrolled", "_walk")

    def __init__(self, walk: Walk) -> None:
        self._walk = walk

    def __enter__(self) -> None:
        walk, situation = self._walk, self._walk.situation
        self._blocks, self._conditional = len(situation.blocks), situation.conditional
        self._gradients_off, self._silent, self._unrolled = situation.gradients_off, walk.silent, walk.unrolled
        self._env = walk.env

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        walk, situation = self._walk, self._walk.situation
        del situation.blocks[self._blocks :]
        situation.conditional, situation.gradients_off = self._conditional, self._gradients_off
        walk.silent, walk.unrolled = self._silent, self._unrolled
        if kind is not None:
            walk.env = self._env
