"""Warnings, loggers and other output functions are called as the user's line would call them."""

from __future__ import annotations

import functools
import logging
import sys
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 13):
    pytest.skip("the runtime keeps output in the graph from torch 2.13 on", allow_module_level=True)

from outputs import printing  # noqa: E402

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
