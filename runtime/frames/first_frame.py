"""When a program begins to compile, and what of it TorchDynamo comes to: that must be mended by then.

Measured on torch 2.13: every call of a compiled function, and every context that compiles, asks `_callback_from_stance`
for its callback before the frame begins, with Dynamo switched off meanwhile. To replace code any later is too
late for that frame. Two ways lead past it, which begin elsewhere: a frame that is captured without being called
(`aot_compile`, the strict export), and an export, which by default runs the program's own Python.

What a frame calls is inlined, and need not be mended before that (`inlined`).
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import weakref
from collections.abc import Callable, Iterator
from types import FrameType, FunctionType, MethodType
from typing import Any

from ..torch_version import version
from . import inlined
from .inlined import Mending


def before_frames(mending: Mending) -> Callable[[], bool]:
    """From now on files are mended before frames may be traced that come to them.

    The result says whether frames are traced now, or those that begin now will be. Raises AttributeError or ImportError
    where this torch is not known.
    """
    from torch import compiler
    from torch._C._dynamo.eval_frame import get_eval_frame_callback
    from torch._dynamo import convert_frame, eval_frame
    from torch._guards import TracingContext

    is_exporting = getattr(compiler, "is_exporting", bool)
    has_broken = inlined.follow(mending) if version() >= inlined.OLDEST else lambda: True
    begun = _Begun(mending)

    original = eval_frame._callback_from_stance

    @functools.wraps(original)
    def callback_from_stance(callback: Any) -> Any:
        if callback is not None and callback is not False and mending.waits():  # else Dynamo is not to compile
            caller = sys._getframe(1)
            called = caller.f_locals.get("fn") if caller.f_code.co_name == "compile_wrapper" else None
            if has_broken() or not begun.has(called):
                # where all is one graph frames that are compiled are counted
                if not getattr(caller.f_locals.get("self"), "fullgraph", True):
                    mending.prepare()
                _mend(mending, None if has_broken() else _roots(called))
                begun.add(called)
        return original(callback)

    def is_within() -> bool:
        if callable(get_eval_frame_callback()) or TracingContext.try_get() is not None or is_exporting():
            return True
        return _is_below(eval_frame.__file__)  # in a function that is not compiled, and returns to one that is

    eval_frame._callback_from_stance = callback_from_stance
    _before(mending.mend_waiting, convert_frame, "_get_frame")
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


# The frame that begins


class _Begun:
    """What was called since a file began to wait last: nothing is to be mended for it, and a call is to be quick."""

    def __init__(self, mending: Mending) -> None:
        self._mending = mending
        self._called: dict[int, weakref.ref[Any]] = {}
        """By id: nothing of the program is run to compare them."""
        self._imports = 0

    def has(self, called: Any) -> bool:
        if self._imports != (imports := self._mending.imports()):
            self._called.clear()
            self._imports = imports
        known = self._called.get(id(called))
        return known is not None and known() is called

    def add(self, called: Any) -> None:
        with contextlib.suppress(TypeError):  # not everything can be referred to
            self._called[id(called)] = weakref.ref(called)


def _mend(mending: Mending, roots: list[FunctionType] | None) -> None:
    """Mends what these functions are made from; all where it is not known what is called."""
    if roots is None:
        mending.mend_waiting()
        return
    paths = [function.__code__.co_filename for function in roots]
    if any(map(mending.waits, paths)):
        mending.reach(*paths)
    for function in roots:
        mending.renew(function)


def _roots(called: Any) -> list[FunctionType] | None:
    """The functions whose frames begin next in a call, where it is known what is called; None where it is not."""
    import torch
    from torch._dynamo.trace_rules import check

    module = called.__self__ if isinstance(called, MethodType) else called
    found = [*_functions(called)]
    if isinstance(module, torch.nn.Module):
        own, every = vars(module), torch.nn.modules.module  # a property, or `__getattr__`, would be asked once more
        hooks = (own.get("_forward_pre_hooks", {}), own.get("_forward_hooks", {}))
        for each in (*hooks, every._global_forward_pre_hooks, every._global_forward_hooks):
            for hook in each.values():
                found += _functions(hook)
        found += _functions(own.get("forward", inspect.getattr_static(type(module), "forward", None)))
    return found if any(not check(function.__code__) for function in found) else None


def _functions(called: Any) -> Iterator[FunctionType]:
    """The functions that run in a call before they call others, and those of which a decorator has made another one:
    frames of torch and the standard library are not traced, but those that they call.
    """
    while isinstance(called, (MethodType, functools.partial)):
        called = called.__func__ if isinstance(called, MethodType) else called.func
    if called is not None and not isinstance(called, FunctionType):
        called = inspect.getattr_static(type(called), "__call__", None)
    seen: list[FunctionType] = []
    while isinstance(called, FunctionType) and called not in seen:
        yield called
        seen.append(called)
        called = vars(called).get("__wrapped__")
