"""Mended output while compiled: the same text in the same order as in plain Python, and no graph break."""

from __future__ import annotations

import functools
import gc
import logging
import sys
import threading
import warnings
import weakref
from collections import namedtuple
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 13):
    pytest.skip("the runtime keeps output in the graph from torch 2.13 on", allow_module_level=True)

from graphmend.runtime import emit, later  # noqa: E402

BACKENDS = ["eager", "aot_eager"]
Pair = namedtuple("Pair", "left right")
X = torch.arange(6.0).reshape(2, 3)
G = torch.arange(6.0).reshape(2, 3).requires_grad_()


class Lines(logging.Handler):
    """Prints records with the place that they report."""

    def emit(self, record: logging.LogRecord) -> None:
        print(record.name, record.levelname, record.lineno, record.funcName, self.format(record))


def _logger(name: str) -> logging.Logger:
    logger = logging.getLogger(f"test_emit.{name}")
    logger.propagate = False
    logger.setLevel(logging.INFO)
    logger.handlers = [Lines()]
    return logger


first, second = _logger("first"), _logger("second")


@functools.lru_cache(None)
def _warn_once(logger: logging.Logger, message: str) -> None:
    logger.warning(message)


class Writer:
    """An output class as tqdm is one."""

    prefix = "line"

    @classmethod
    def write(cls, text: str, file: Any = None) -> None:
        print(text, file=file)

    def line(self, *values: Any) -> None:
        print(self.prefix, *values)


writer = Writer()


class Stranger:
    def __repr__(self) -> str:
        return "stranger"


stranger = Stranger()


def prints(x: Any) -> Any:
    y = x * 2
    emit(print, "y", y.sum(), y, sep="|", end="!\n", flush=True)
    emit(print, x.shape, x.shape[0], x.dtype, x.device, None, True, 2.5, file=sys.stderr)
    emit(print)
    return y


def formats(x: Any) -> Any:
    emit(print, f"sum {x.sum():.2f} {x.shape} {x.shape[0]} {x.dtype} {'text'} {{}}")
    emit(print, "sum {:.2f} {}".format(x.sum(), x.shape))  # noqa: UP032
    emit(print, later("sum %.2f".__mod__, x.sum()), later("{v:>8}".format, v=later(x.sum().item)))
    emit(print, f"{later(x.sum().item):.1f}")
    return x


def scalars(x: Any) -> Any:
    s = x.sum()
    emit(
        print,
        later(s.item),
        later(float, s),
        later(int, s),
        later(bool, s),
        later(len, x),
        later(round, later(s.item), 2),
    )
    emit(print, later(x.tolist), later(str, s), later(repr, x), later(" ".join, ["a", later(str, s)]))
    return x


def containers(x: Any) -> Any:
    emit(print, [x, (x, 1)], {"a": x, 3: [x]}, (), [], {}, (x.sum(),), Pair(x, 1), x.max(0), torch.Size([1]))
    emit(print, torch.float16, slice(1, 2), range(3), 1j, b"bytes", int, ...)
    return x


def grows(x: Any) -> Any:
    seen = []
    for i in range(3):
        seen.append(x + i)
        emit(print, i, seen)
    return seen[-1]


def mutates(x: Any) -> Any:
    y = x.clone()
    emit(first.warning, "%s", y)
    y.mul_(3)
    emit(print, y)
    y[0] = 9
    emit(print, y, x)
    x.add_(1)
    emit(print, x)
    return y + x


def histories(x: Any) -> Any:
    y = x * 2
    emit(print, x, y, y.detach(), y.view(-1), x[1:], x.T)
    emit(first.warning, "%s", y.sum())
    with torch.no_grad():
        emit(print, x * 3)
    return y


def logs(x: Any) -> Any:
    emit(first.info, "info %s %d %s", x, x.shape[0], x.dtype)
    emit(first.debug, "not shown %s", x)
    emit(first.log, logging.ERROR, "log %s", x.sum())
    emit(first.error, "no arguments, 100%")
    emit(second.critical, f"critical {x.sum()}", extra={"key": 1})
    return x


def other_functions(x: Any) -> Any:
    emit(Writer.write, f"class method {x.sum()}", file=sys.stdout)
    emit(writer.line, x, 1)
    emit(sys.stdout.write, "written\n")
    emit(sys.stdout.flush)
    emit(functools.partial(print, "partial", sep="-"), x)
    return x


def only_output(x: Any) -> Any:
    emit(print, "nothing computed")
    return x


class Inner(torch.nn.Module):
    def __init__(self, logger: logging.Logger) -> None:
        super().__init__()
        self.logger = logger
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self, x: Any) -> Any:
        emit(self.logger.warning, "inner %s", x.sum())
        emit(print, self.weight)
        return x * self.weight


class Outer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = torch.nn.ModuleList([Inner(first), Inner(second)])

    def forward(self, x: Any) -> Any:
        for part in self.parts:
            for i in range(2):
                emit(print, "outer", i)
                x = part(x)
        return x


def around_a_break(x: Any) -> Any:
    emit(print, "one", x)
    print("plain")
    emit(print, "two", x + 1)
    torch._dynamo.graph_break()
    emit(print, "three", later(x.sum().item))
    return x + 2


def in_a_skipped_frame(x: Any) -> Any:
    for i in range(2):
        emit(print, "one", i, x)
        print("plain")
        emit(print, "two", x + 1)
    return x + 2


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        emit(print, "forward", x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        emit(print, "backward", gradient)
        return gradient * 2


def custom_gradient(x: Any) -> Any:
    return Double.apply(x).sum()


IN_ONE_GRAPH = [
    (prints, X),
    (formats, X),
    (scalars, X),
    (containers, X),
    (grows, X),
    (mutates, X),
    (prints, G),
    (containers, G),
    (histories, G),
    (logs, X),
    (other_functions, X),
    (only_output, X),
    (Outer(), G),
    (custom_gradient, G),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("program", "x"), IN_ONE_GRAPH)
def test_the_text_and_the_order_are_those_of_plain_python(check: Any, program: Any, x: Any, backend: str) -> None:
    assert check(program, x, backend=backend, fullgraph=True) == 0


@pytest.mark.parametrize(("program", "x"), [(prints, G), (mutates, X), (Outer(), G)])
def test_inductor_keeps_every_line(check: Any, program: Any, x: Any) -> None:
    assert check(program, x, backend="inductor", fullgraph=True) == 0


@pytest.mark.parametrize("backend", [*BACKENDS, "inductor"])
def test_symbolic_shapes_and_numbers_are_values_not_guards(check: Any, backend: str) -> None:
    def program(x: Any, scale: float, count: int) -> Any:
        emit(print, x.shape, x.shape[0] * 2, len(x), scale, count)
        return x * scale

    def computed(x: Any, scale: float) -> Any:
        emit(print, scale * 2)
        return x * scale

    torch._dynamo.reset()
    compiled = torch.compile(program, backend=backend, dynamic=True, fullgraph=True)
    with torch._dynamo.config.patch(error_on_recompile=True):
        compiled(torch.ones(4, 3), 2.5, 5)
        for rows, scale, count in ((5, 3.5, 6), (7, 1e30, 9)):
            compiled(torch.ones(rows, 3), scale, count)
    assert check(program, torch.ones(4, 3), 2.5, 5, backend=backend, dynamic=True) == 0
    assert check(computed, X, 2.5, backend=backend, dynamic=True) == 0


def test_an_item_that_the_graph_captures_is_carried(check: Any) -> None:
    def program(x: Any) -> Any:
        n, k = x.sum().item(), x.long().sum().item()
        emit(print, n, k, k + 1)
        return x * n

    assert check(program, X, fullgraph=True) == 0


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", [around_a_break, in_a_skipped_frame])
def test_output_around_other_breaks_keeps_its_place(check: Any, program: Any, backend: str) -> None:
    check(program, X, backend=backend)


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


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_error_behind_output_loses_none_of_it(check: Any, backend: str) -> None:
    def fails_in_the_graph(x: Any, index: Any) -> Any:
        y = x * 2
        emit(print, "before", y)
        y = y[index]
        emit(print, "not reached")
        return y

    def fails_in_python(x: Any) -> Any:
        emit(print, "before", x)
        raise ValueError

    assert check(fails_in_the_graph, X, torch.tensor([7]), backend=backend) == 0
    check(fails_in_python, X, backend=backend)


def test_redirected_streams_are_looked_up_when_the_output_happens(check: Any) -> None:
    def program(x: Any) -> Any:
        emit(print, "out", x)
        emit(print, "err", x, file=sys.stderr)
        emit(sys.stdout.write, "written\n")
        return x + 1

    assert check(program, X, fullgraph=True) == 0  # `check` redirects both anew for each call


def test_another_logger_in_the_same_place_is_not_mixed_up() -> None:
    torch._dynamo.reset()
    seen: list[str] = []
    for logger in (first, second):
        logger.handlers[0].emit = lambda record: seen.append(record.name)  # type: ignore[method-assign]
    compiled = [torch.compile(Inner(logger), backend="aot_eager", fullgraph=True) for logger in (first, second)]
    try:
        for module in (*compiled, *compiled):
            module(X)
    finally:
        for logger in (first, second):
            del logger.handlers[0].emit
    assert seen == [first.name, second.name] * 2


@pytest.mark.parametrize("kind", ["object", "ordered dictionary", "array", "vmap", "checkpoint"])
def test_what_the_graph_cannot_carry_breaks_it_and_still_prints(check: Any, kind: str) -> None:
    from collections import OrderedDict

    def program(x: Any) -> Any:
        if kind == "object":
            emit(print, stranger, x)
        elif kind == "ordered dictionary":
            emit(print, OrderedDict(a=x))
        elif kind == "array":
            emit(print, x.detach().numpy())
        elif kind == "vmap":
            torch.vmap(inside)(x)
        else:
            return torch.utils.checkpoint.checkpoint(inside, x, use_reentrant=False)
        return x + 1

    def inside(x: Any) -> Any:
        y = x.sin()
        emit(print, y.shape)
        return y.cos()

    assert check(program, G if kind == "checkpoint" else X) > 0


def writes_to_stdout_replaced(x: Any) -> Any:
    real, sys.stdout = sys.stdout, sys.stderr
    emit(print, x)
    sys.stdout = real
    return x + 1


def changes_print_options(x: Any) -> Any:
    torch.set_printoptions(precision=1)
    emit(print, x / 3)
    torch.set_printoptions(precision=4)
    return x + 1


def changes_the_writer(x: Any) -> Any:
    writer.prefix = "new"
    emit(writer.line, x)
    return x + 1


def catches_warnings(x: Any) -> Any:
    with warnings.catch_warnings():
        emit(warnings.simplefilter, "ignore")
        emit(warnings.warn, "hidden")
    return x + 1


def shows_the_exception(x: Any) -> Any:
    try:
        raise ValueError("a")
    except ValueError:
        emit(first.exception, "bad")
        emit(first.error, "bad", exc_info=True)
    return x + 1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "program",
    [writes_to_stdout_replaced, changes_print_options, changes_the_writer, catches_warnings, shows_the_exception],
)
def test_output_that_depends_on_what_the_region_changes_is_not_put_off(check: Any, program: Any) -> None:
    filters = list(warnings.filters)
    check(program, X, backend="eager")
    assert list(warnings.filters) == filters


def test_on_a_torch_without_the_mechanism_output_breaks_the_graph(check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from graphmend.runtime import mechanism

    monkeypatch.setattr(mechanism, "available", False)
    for program in (prints, formats, scalars, mutates, Outer()):
        assert check(program, X, backend="eager") > 0


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


def test_threads_each_write_their_own_lines() -> None:
    torch._dynamo.reset()
    lines: dict[int, list[float]] = {}

    def keep(value: Any) -> None:
        lines.setdefault(threading.get_ident(), []).append(float(value))

    def program(x: Any) -> Any:
        for i in range(3):
            emit(keep, x.sum() + i)
        return x + 1

    compiled = torch.compile(program, backend="aot_eager", fullgraph=True)
    starts = [0.0, 10.0, 20.0, 30.0]
    threads = [threading.Thread(target=lambda s=s: [compiled(torch.tensor([s])) for _ in range(20)]) for s in starts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(lines.values()) == [[s, s + 1, s + 2] * 20 for s in starts]


def test_no_tensor_outlives_its_call() -> None:
    torch._dynamo.reset()
    seen: list[Any] = []

    def keep(value: Any) -> None:
        seen.append(weakref.ref(value))

    def program(x: Any) -> Any:
        y = x * 2
        emit(keep, y)
        emit(print, y, end="")
        return y + 1

    compiled = torch.compile(program, backend="aot_eager", fullgraph=True)
    x = torch.ones(3)
    given = weakref.ref(x)
    compiled(x)
    del x
    gc.collect()
    assert given() is None
    assert [reference() for reference in seen] == [None]


def test_plain_calls_of_emit_are_not_compiled_on_their_own() -> None:
    from torch._dynamo.testing import CompileCounter

    torch._dynamo.reset()
    counter = CompileCounter()

    def program(x: Any) -> Any:
        for _ in range(2):
            torch._dynamo.graph_break()  # the whole frame runs in plain Python
            emit(print, x, end="")
        return x

    torch.compile(program, backend=counter)(X)
    assert counter.frame_count == 0
