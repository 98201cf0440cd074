"""Warnings, loggers and other output functions are called as the user's line would call them."""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import sys
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from graphmend.runtime import mechanism  # noqa: E402

if tuple(map(int, torch.__version__.split(".")[:2])) < mechanism.OLDEST:
    pytest.skip("the runtime keeps no output in the graph of this torch", allow_module_level=True)

from outputs import Lines, printing  # noqa: E402

from graphmend.runtime import emit  # noqa: E402

pytestmark = pytest.mark.torch

X = torch.arange(6.0).reshape(2, 3)


first = printing("first")


@functools.lru_cache(None)
def _warn_once(logger: logging.Logger, message: str) -> None:
    logger.warning(message)


def test_a_once_only_warning_is_shown_once(check: Any) -> None:
    def program(x: Any) -> Any:
        emit(_warn_once, first, "careful")
        return x + 1

    assert check(program, X, before=_warn_once.cache_clear) > 0, "a logger as argument is not carried"

    def method(x: Any) -> Any:
        emit(first.once, "careful")
        return x + 1

    logging.Logger.once = _warn_once  # type: ignore[attr-defined]
    try:
        assert check(method, X, before=_warn_once.cache_clear) == 0
    finally:
        del logging.Logger.once  # type: ignore[attr-defined]


def test_warnings_name_the_users_line_and_obey_the_filters(check: Any) -> None:
    def helper() -> None:
        emit(warnings.warn, "from the helper", stacklevel=2)

    def program(x: Any) -> Any:
        emit(warnings.warn, "careful")
        emit(warnings.warn, "old", DeprecationWarning)
        emit(warnings.warn, f"sum {x.sum()}", FutureWarning, 1)
        helper()
        return x + 1

    def forget() -> None:
        globals().pop("__warningregistry__", None)

    for action in ("always", "default", "once", "ignore"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for message in ("careful", "old", "sum", "from the helper"):
                warnings.filterwarnings(action, message=message)  # type: ignore[arg-type]
            assert check(program, X, before=forget) == 0


def test_a_warning_turned_into_an_error_raises_as_in_plain_python(check: Any) -> None:
    def program(x: Any) -> Any:
        emit(print, "before")
        emit(warnings.warn, "boom", RuntimeWarning)
        emit(print, "not reached")
        return x + 1

    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="boom")
        assert check(program, X) == 0


def test_redirected_streams_are_looked_up_when_the_output_happens(check: Any) -> None:
    def program(x: Any) -> Any:
        emit(print, "out", x)
        emit(print, "err", x, file=sys.stderr)
        emit(sys.stdout.write, "written\n")
        return x + 1

    assert check(program, X, fullgraph=True) == 0  # `check` redirects both anew for each call


def test_plain_python_reports_the_users_line() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        emit(warnings.warn, "careful")
        emit(warnings.warn, "careful", UserWarning, 1)
        warnings.warn("careful", stacklevel=1)
    assert {warning.filename for warning in caught} == {__file__}
    assert [warning.lineno - caught[0].lineno for warning in caught] == [0, 1, 2]


class OwnLogger(logging.Logger):
    """A logger with a way of its own to write, without a stack level."""

    def _log(self, level: int, msg: object, args: Any, exc_info: Any = None, extra: Any = None) -> None:  # type: ignore[override]
        print("own", level, msg % args)


class Callable_:
    """An output function that cannot be hashed."""

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, *values: Any) -> None:
        print("called", *values)


own_logger, unhashable = OwnLogger("own"), Callable_()


def test_output_functions_of_any_make_are_called_as_they_are(check: Any) -> None:
    def program(x: Any) -> Any:
        emit(own_logger.warning, "sum %s", x.sum())
        emit(unhashable, x)
        emit(first.warning, msg="by keyword")
        return x + 1

    check(program, X)


class Finds(logging.Logger):
    """A logger that walks the stack by itself."""

    def findCaller(self, stack_info: bool = False, stacklevel: int = 1) -> Any:
        frame: Any = sys._getframe(1)
        while frame.f_code.co_filename in (logging.__file__, torch.__file__):
            frame = frame.f_back
        return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, None


class FindsAbove(logging.Logger):
    """A logger that asks for the caller of its caller."""

    def findCaller(self, stack_info: bool = False, stacklevel: int = 1) -> Any:
        return super().findCaller(stack_info, stacklevel + 1)


def own(kind: type[logging.Logger]) -> logging.Logger:
    made = kind(f"outputs.{kind.__name__}", logging.INFO)
    made.handlers = [Lines()]
    return made


adapter = logging.LoggerAdapter(first, {"key": 1})
twice = logging.LoggerAdapter(adapter, {})  # type: ignore[arg-type]
child = first.getChild("child")
finds, finds_above = own(Finds), own(FindsAbove)


def helper_warns(message: str) -> None:
    warnings.warn(message, stacklevel=2)


def helper_logs(message: str) -> None:
    first.warning(message, stacklevel=2)


def test_a_record_names_the_users_line_whoever_writes_it(check: Any) -> None:
    def inner(x: Any) -> None:
        emit(first.warning, "from inner", stacklevel=2)
        emit(adapter.info, "from inner", stacklevel=2)
        emit(logging.warning, "root")

    def program(x: Any) -> Any:
        emit(adapter.info, "sum %s", x.sum())
        emit(adapter.log, logging.ERROR, "adapted")
        emit(adapter.debug, "not shown")
        emit(twice.warning, "adapted twice")
        emit(first.log, logging.ERROR, "a level")
        emit(first.log, level=logging.ERROR, msg="a level by name")
        emit(first.log, msg="a level by name", level=5)
        emit(child.warning, "child")
        emit(finds.warning, "walks")
        emit(finds_above.warning, "asks")
        emit(helper_logs, "helper")
        inner(x)
        return x + 1

    logging.root.handlers.insert(0, Lines())
    try:
        assert check(program, X, fullgraph=True) == 0
    finally:
        del logging.root.handlers[0]


def test_a_helper_that_warns_for_its_caller_names_the_users_line(check: Any) -> None:
    def program(x: Any) -> Any:
        emit(helper_warns, "helped")
        return x + 1

    def forget() -> None:
        globals().pop("__warningregistry__", None)

    for action in ("always", "default"):
        with warnings.catch_warnings():
            warnings.simplefilter(action)  # type: ignore[arg-type]
            assert check(program, X, before=forget) == 0
        assert "__warningregistry__" in globals() or action == "always"


def test_the_line_is_the_plain_programs() -> None:
    """The tests above compare `emit` with itself: this one compares it with the call."""
    seen: list[tuple[int, str]] = []

    class Keeps(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append((record.lineno, record.funcName))

    handler = Keeps()
    loggers = [first, child, finds, finds_above]
    for logger in (first, finds, finds_above):
        logger.addHandler(handler)
    try:
        for write in [each.warning for each in (*loggers, adapter, twice)]:
            for level in (1, 2):
                more = {"stacklevel": level}
                emit(write, "a", **more), write("a", **more)
                assert seen[-1] == seen[-2]
                assert seen[-1][1] == "test_the_line_is_the_plain_programs" or level > 1
        emit(helper_logs, "a"), helper_logs("a")
        assert seen[-1] == seen[-2]
    finally:
        for logger in (first, finds, finds_above):
            logger.removeHandler(handler)


@functools.lru_cache(None)
def once(message: str) -> None:
    emit(print, message)


@functools.cache
def logs_once(message: str) -> None:
    emit(first.warning, message)


def test_a_cached_function_writes_once(check: Any) -> None:
    def program(x: Any) -> Any:
        once("careful")
        logs_once("careful")
        return x + 1

    def forget() -> None:
        once.cache_clear()
        logs_once.cache_clear()

    assert check(program, X, before=forget) > 0, "the graph knows no cache"


def test_a_handler_behind_output_is_reached(check: Any) -> None:
    def program(x: Any) -> Any:
        try:
            emit(print, "in")
            y = x.reshape(7)
        except RuntimeError as error:
            emit(print, "err", type(error))
            y = x
        finally:
            emit(print, "fin")
        return y

    def called(x: Any) -> Any:
        try:
            return inside(x)
        except RuntimeError:
            return x

    def inside(x: Any) -> Any:
        emit(print, "inside")
        return x.reshape(7)

    def guarded(x: Any) -> Any:
        with torch.no_grad():
            emit(print, "no handler here")
            return x + 1

    def fails(x: Any) -> Any:
        emit(print, "before", x)
        y = x.reshape(7)
        emit(print, "not reached", y)
        return y

    def in_the_graph(x: Any, index: Any) -> Any:
        try:
            try:
                emit(print, "in")
                return x[index]
            finally:
                emit(print, "fin")
        except (IndexError, ValueError):
            emit(print, "err")
            return x

    def bare(x: Any, index: Any) -> Any:
        try:
            emit(print, "in")
            return x[index]
        except:  # noqa: E722
            return x

    def finally_only(x: Any) -> Any:
        try:
            emit(print, "in")
            y = x + 1
        finally:
            x = x * 2
        return x + y

    check(program, X)
    check(called, X)
    check(in_the_graph, X, torch.tensor([7]))
    check(bare, X, torch.tensor([7]))
    assert check(finally_only, X) == 0
    assert check(guarded, X) == 0
    torch._dynamo.reset()
    for _ in range(2):
        with contextlib.redirect_stdout(io.StringIO()) as stream, pytest.raises(RuntimeError):
            torch.compile(fails, backend="eager")(X)
        assert stream.getvalue() == f"before {X}\n"
