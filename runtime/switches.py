"""Scalars and data-dependent shapes in the graph, where that holds: TorchDynamo's two capture switches, frame by frame.

`torch._dynamo.config.capture_scalar_outputs` and `capture_dynamic_output_shape_ops` keep `x.item()`, `x.nonzero()` and
the like in the graph. Switched on for everything they turn some breaks into errors (`GuardOnDataDependentSymNode`, a
backend that cannot go on). Here each frame is compiled with them; one that does not compile so is compiled with one of
them, and in the end without, as if nothing had been switched. What small inputs decide is taken as known (`known`).
Nothing of a frame has run when it is compiled, so nothing runs twice.

Measured on torch 2.13.0. Elsewhere, or where a part of Dynamo is missing, `install` does nothing and says so.
"""

from __future__ import annotations

import functools
from types import CodeType
from typing import Any

from .torch_version import version

MEASURED = ((2, 13),)
"""The minor versions that this was measured with: what it changes is private to Dynamo, and may differ in any other."""
_SCALARS, _SHAPES = "capture_scalar_outputs", "capture_dynamic_output_shape_ops"
#: what is tried, in order
_RUNGS = ((_SCALARS, _SHAPES), (_SHAPES,), (_SCALARS,), ())

#: how a frame ends that was traced and could not be compiled, though nothing was raised
_GIVEN_UP = ("an error was suppressed", "compilation failed", "Dynamo decided to skip the frame while tracing")

failed: dict[CodeType, tuple[int, str]] = {}
"""The code that is not compiled with both switches: with which rung of those above, and the error that it gave."""


def install() -> bool:
    """From now on frames are compiled with the switches where that holds. False where this torch is not known."""
    if version() not in MEASURED:
        return False
    try:
        from torch._dynamo import config
        from torch._dynamo.convert_frame import ConvertFrame

        from .specialised import known_values
    except ImportError:
        return False
    if not all(hasattr(config, s) for s in _RUNGS[0]):
        return False
    original = ConvertFrame.__call__
    known_values.install()
    if not hasattr(original, "__wrapped__"):
        ConvertFrame.__call__ = _with_switches(original, config, known_values.known)  # type: ignore[method-assign]
    return True


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
