"""Scalars and data-dependent shapes in the graph, where that holds: TorchDynamo's two capture switches, frame by frame.

`torch._dynamo.config.capture_scalar_outputs` and `capture_dynamic_output_shape_ops` keep `x.item()`, `x.nonzero()` and
the like in the graph. Switched on for everything they turn some breaks into errors (`GuardOnDataDependentSymNode`, a
backend that cannot go on). Here each frame is compiled with them; one that does not compile so is compiled with one of
them, and in the end without, as if nothing had been switched. What small inputs decide is taken as known (`known`).
Nothing of a frame has run when it is compiled, so nothing runs twice.

Measured on torch 2.13.0. What is changed is private to Dynamo: with an older torch, and wherever the self-test does not
pass (`specialised/self_test.py`), `install` leaves Dynamo as it is and says so.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from types import CodeType
from typing import Any

from .torch_version import version

OLDEST = (2, 13)
"""The oldest minor version with which frames compiled so were measured to be right. What passes the self-test with an
older one fails elsewhere."""
_SCALARS, _SHAPES = "capture_scalar_outputs", "capture_dynamic_output_shape_ops"
#: what is tried, in order
_RUNGS = ((_SCALARS, _SHAPES), (_SHAPES,), (_SCALARS,), ())

#: how a frame ends that was traced and could not be compiled, though nothing was raised
_GIVEN_UP = ("an error was suppressed", "compilation failed", "Dynamo decided to skip the frame while tracing")

_log = logging.getLogger(__name__)

failed: dict[CodeType, tuple[int, str]] = {}
"""The code that is not compiled with both switches: with which rung of those above, and the error that it gave."""


_installed = False


def install() -> bool:
    """From now on frames are compiled with the switches where that holds. False where this torch is not known."""
    global _installed
    _installed = _installed or (version() >= OLDEST and _install())
    return _installed


def _install() -> bool:
    """Hooks into Dynamo, and out of it again where that does not do what it is there for."""
    undo: list[Callable[[], None]] = []
    try:
        from torch._dynamo import config
        from torch._dynamo.convert_frame import ConvertFrame

        from .specialised import known_values, self_test

        original = ConvertFrame.__call__
        undo.append(functools.partial(setattr, ConvertFrame, "__call__", original))
        ConvertFrame.__call__ = _with_switches(original, config, known_values.known)  # type: ignore[method-assign]
        undo.append(known_values.install())
        if self_test.passes():
            return True
    except Exception as error:  # whatever this torch has no more, or has otherwise
        _log.debug("the capture switches are not used: %s: %s", type(error).__name__, error)
    for each in reversed(undo):
        each()
    failed.clear()
    return False


def _with_switches(original: Any, config: Any, known: Any) -> Any:
    @functools.wraps(original)
    def convert(self: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
        rung, _ = failed.get(frame.f_code, (0, ""))
        while _RUNGS[rung]:
            try:
                with config.patch(dict.fromkeys(_RUNGS[rung], True)), known(frame.f_code, self) as attempt:
                    result = original(self, frame, *args, **kwargs)
            except Exception as error:  # where the switches are not its cause it comes again, from below
                rung += 1
                failed[frame.f_code] = rung, f"{type(error).__name__}: {error}".splitlines()[0]
                continue
            reason = result.skip_reason or ""
            if result.guarded_code is not None:
                attempt.done()
                return result
            if not reason.startswith(_GIVEN_UP):
                return result
            rung = len(_RUNGS) - 1
            failed[frame.f_code] = rung, reason.splitlines()[0]
        return original(self, frame, *args, **kwargs)

    return convert
