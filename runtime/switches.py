"""Scalars, data-dependent shapes and recurrent layers in the graph, where that holds: TorchDynamo's switches for them,
frame by frame.

`torch._dynamo.config.capture_scalar_outputs` and `capture_dynamic_output_shape_ops` keep `x.item()`, `x.nonzero()` and
the like in the graph. Switched on for everything they turn some breaks into errors (`GuardOnDataDependentSymNode`, a
backend that cannot go on), others into more breaks, and graphs assert what they took for granted. Here

* a number whose value must be known later breaks the graph where it is read (`captures.attempt`);
* a graph that cannot go on with the values of a call gives way to the code that it was made from (`captures.fallback`),
  so only graphs capture numbers of which nothing is left behind (`captures.recovery`);
* recurrent layers become one operation each (`captures.layers`);
* a frame that still cannot be compiled is compiled as if nothing had been switched. Nothing of it has run then, so
  nothing runs twice.

What small inputs decide is taken as known where a number must be known and the frame is one graph by that
(`specialised`): until a call has other values. With `specialise` it is in every frame, for some sets of values.

Measured on torch 2.13.0. What is changed is private to Dynamo: with an older torch, and wherever the self-test does not
pass (`specialised/self_test.py`), `install` leaves Dynamo as it is and says so.
"""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable
from typing import Any

from .torch_version import version

OLDEST = (2, 13)
"""The oldest minor version with which frames compiled so were measured to be right. What passes the self-test with an
older one fails elsewhere."""
OLDEST_PYTHON = (3, 11)
"""Python before it has no table of exceptions, with which compiled code gives way to the original."""
_SWITCHES = {"capture_scalar_outputs": True, "capture_dynamic_output_shape_ops": True}

#: how a frame ends that was traced and could not be compiled, though nothing was raised
_GIVEN_UP = ("an error was suppressed", "compilation failed", "Dynamo decided to skip the frame while tracing")
#: what the first of these says, which stands for a graph break alone unless TorchDynamo is told to suppress all errors
_SUPPRESSED, _UNRESUMED = _GIVEN_UP[0], "no graph can go on behind a graph break in it: it runs as it is"

_log = logging.getLogger(__name__)

_installed = False
_undo: list[Callable[[], None]] = []
"""What takes the hooks out of Dynamo again, the last one first."""
_specialises = False
"""Are values taken as known again after they have changed?"""
_trains_whole = False
"""Do recurrent layers stay in the graph where that runs their forward twice?"""


SelfTest = Callable[[], bool]
"""Do the hooks into this torch do their work? It takes the better part of a second."""


def _now(test: SelfTest) -> bool:
    return test()


def install(specialise: bool = False, passes: Callable[[SelfTest], bool] = _now, *, trains_whole: bool = False) -> bool:
    """From now on frames are compiled with the switches where that holds. False where this torch is not known.

    `passes` makes the self-test that it is given, or knows its result. With `trains_whole` recurrent layers stay in
    the graph while they train, too, where their forward runs once more for the gradients.
    """
    global _installed, _specialises, _trains_whole
    known = version() >= OLDEST and sys.version_info >= OLDEST_PYTHON
    _installed = _installed or (known and _install(passes))
    _specialises, _trains_whole = specialise, trains_whole
    return _installed


def install_when_needed(
    specialise: bool = False, passes: Callable[[SelfTest], bool] = _now, *, trains_whole: bool = False
) -> Callable[[], None]:
    """Installs when the first frame is compiled, or the result is called: what imports Dynamo may itself be half
    imported before, and a program that compiles nothing does not wait for the self-test.
    """
    from torch._dynamo.convert_frame import ConvertFrame

    original = ConvertFrame.__call__

    @functools.wraps(original)
    def convert(self: Any, *args: Any, **kwargs: Any) -> Any:
        install_now()
        return ConvertFrame.__call__(self, *args, **kwargs)

    def install_now() -> None:
        if ConvertFrame.__call__ is convert:
            ConvertFrame.__call__ = original  # type: ignore[method-assign]
            install(specialise, passes, trains_whole=trains_whole)

    ConvertFrame.__call__ = convert  # type: ignore[method-assign]
    return install_now


def uninstall() -> None:
    """From now on frames are compiled as without GraphMend. Those that are compiled stay, until Dynamo is reset."""
    global _installed
    while _undo:
        _undo.pop()()
    _installed = False


def is_installed() -> bool:
    """Are frames compiled with the switches?"""
    return _installed


def _install(passes: Callable[[SelfTest], bool]) -> bool:
    """Hooks into Dynamo, and out of it again where that does not do what it is there for."""
    global _specialises
    undo: list[Callable[[], None]] = []
    try:
        from torch._dynamo import config
        from torch._dynamo.convert_frame import ConvertFrame

        from .captures import attempt, numbers
        from .specialised import known_values, self_test, written_numbers

        original = ConvertFrame.__call__
        undo.append(functools.partial(setattr, ConvertFrame, "__call__", original))
        ConvertFrame.__call__ = _with_switches(original, config, attempt)  # type: ignore[method-assign]
        undo.append(written_numbers.install())
        undo.append(known_values.install())
        undo.append(numbers.install())
        _specialises = True
        passed = passes(self_test.passes)
        attempt.taken_back.clear()
        attempt.kept.clear()
        if passed:
            _undo.extend(undo)
            return True
    except Exception as error:  # whatever this torch has no more, or has otherwise
        _log.debug("the capture switches are not used: %s: %s", type(error).__name__, error)
    for each in reversed(undo):
        each()
    return False


def taken_back() -> list[tuple[str, int, str, str]]:
    """The numbers that are not captured after that was tried: path, line, function and reason of each."""
    attempt = sys.modules.get(f"{__package__}.captures.attempt")
    return list(attempt.taken_back) if attempt is not None else []


def kept() -> list[tuple[str, int, str]]:
    """The numbers and sizes that are captured, however their graph is used later: path, line and function of each."""
    attempt = sys.modules.get(f"{__package__}.captures.attempt")
    return [(*place, function) for place, (function, _) in attempt.kept.items()] if attempt is not None else []


def _with_switches(original: Any, config: Any, attempts: Any) -> Any:
    from torch._dynamo.exc import BackendCompilerFailed

    @functools.wraps(original)
    def convert(self: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
        plan = attempts.plan_of(frame.f_code)
        while not plan.is_plain:
            attempt = attempts.Attempt(plan, self, plan.may_know(self, _specialises), _specialises, _trains_whole)
            with config.patch(_SWITCHES), attempts.attempting(attempt):
                try:
                    result = original(self, frame, *args, **kwargs)
                except Exception as error:  # where the switches are not its cause it comes again, from below
                    # operations that take a tensor for a number make symbols that only the backend sees
                    if attempt.is_plain and not isinstance(error, BackendCompilerFailed):
                        raise
                    reason = _first_line(error)
                else:
                    if result.guarded_code is not None:
                        attempt.done(result.guarded_code.guard_manager)
                        return result
                    reason = (result.skip_reason or "").splitlines()[0] if result.skip_reason else ""
                    if attempt.is_plain or not reason.startswith(_GIVEN_UP):
                        return result
            is_break = reason.startswith(_SUPPRESSED) and not config.suppress_errors
            attempt.yields(_UNRESUMED if is_break else reason)
        with attempts.suspended():
            return original(self, frame, *args, **kwargs)

    return convert


def _first_line(error: BaseException) -> str:
    """What went wrong, in a line; of a backend's failure what the backend said."""
    error = getattr(error, "inner_exception", error)
    return f"{type(error).__name__}: {error}".splitlines()[0]
