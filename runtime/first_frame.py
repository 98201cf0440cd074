"""When a program begins to compile: what TorchDynamo is about to trace must be mended by then.

Measured on torch 2.13: every call of a compiled function, and every context that compiles, asks `_callback_from_stance`
for its callback before the frame begins, with Dynamo switched off meanwhile. To replace code any later is too
late for that frame. Two ways lead past it, which begin elsewhere: a frame that is captured without being called
(`aot_compile`, the strict export), and an export, which by default runs the program's own Python.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def before_frames(action: Callable[[], object]) -> Callable[[], bool]:
    """From now on does something each time before frames may be traced.

    The result says whether they are, or those that begin now will be. Raises AttributeError or ImportError where this
    torch is not known.
    """
    from torch import compiler
    from torch._C._dynamo.eval_frame import get_eval_frame_callback
    from torch._dynamo import convert_frame, eval_frame
    from torch._guards import TracingContext

    is_exporting = getattr(compiler, "is_exporting", bool)

    original = eval_frame._callback_from_stance

    @functools.wraps(original)
    def callback_from_stance(callback: Any) -> Any:
        if callback is not None and callback is not False:  # Dynamo is switched off, or is not to compile
            action()
        return original(callback)

    def is_within() -> bool:
        if callable(get_eval_frame_callback()) or TracingContext.try_get() is not None or is_exporting():
            return True
        return _is_below(eval_frame.__file__)  # in a function that is not compiled, and returns to one that is

    eval_frame._callback_from_stance = callback_from_stance
    _before(action, convert_frame, "_get_frame")
    return is_within


def before_exports(action: Callable[[], object]) -> None:
    """From now on does something each time before `torch.export` begins."""
    from torch.export import _trace

    _before(action, _trace, "_export")


def _is_below(file: str) -> bool:
    """Was this thread's code called by code of a file?"""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_filename != file:
        frame = frame.f_back
    return frame is not None


def _before(action: Callable[[], object], module: Any, name: str) -> None:
    """Does something before each call of a function, where this torch has it."""
    if (original := getattr(module, name, None)) is None:
        return

    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        action()
        return original(*args, **kwargs)

    setattr(module, name, function)
