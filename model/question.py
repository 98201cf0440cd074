"""The question itself: what a replacement is, and the typed function whose body is the model."""

from __future__ import annotations

from dataclasses import dataclass

from graphmend.model.meaning import by, means
from graphmend.model.subject import Subject


@dataclass(frozen=True)
class Replacement:
    """A new text of one function, which TorchDynamo traces without this break."""

    source: str = means("the whole function: same signature, decorators and docstring; no imports", code=True)
    differs: tuple[str, ...] = means("each way in which it may behave differently; empty if there is none")
    why: str = means("one sentence: how the break goes")


@dataclass(frozen=True)
class Impossible:
    """No text of this function alone has that property."""

    reason: str = means("one sentence")


@by
def without_break(subject: Subject) -> Replacement | Impossible:
    """Rewrite the function so that TorchDynamo captures it without the marked break: same values, gradients, messages,
    exceptions and effects."""
    raise NotImplementedError  # the model is the body
