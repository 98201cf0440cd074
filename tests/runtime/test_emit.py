"""Mended output while compiled: the same text in the same order as in plain Python, and no graph break."""

from __future__ import annotations

import functools
import logging
import sys
from collections import namedtuple
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from graphmend.runtime import mechanism  # noqa: E402

if tuple(map(int, torch.__version__.split(".")[:2])) < mechanism.OLDEST:
    pytest.skip("the runtime keeps no output in the graph of this torch", allow_module_level=True)

from outputs import Writer, printing  # noqa: E402

from graphmend.runtime import emit, emit_if, later  # noqa: E402

pytestmark = pytest.mark.torch

BACKENDS = ["eager", "aot_eager"]
Pair = namedtuple("Pair", "left right")
X = torch.arange(6.0).reshape(2, 3)
G = torch.arange(6.0).reshape(2, 3).requires_grad_()


first, second = printing("first"), printing("second")
writer = Writer()


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


def asks(x: Any) -> Any:
    y = x * 2
    emit_if(y.sum() > 0, print, "positive", y.mean(), later(y.sum().item), sep="-")
    emit_if(~(y.sum() > 0), print, "never")
    emit_if(y.max() > 3, first.warning, "%s", y)
    return y


def constants(x: Any) -> Any:
    """What is computed of constants alone is known while tracing, and still said once a call."""
    small = torch.tensor(0.1) < 1.0
    emit_if(small, print, "small", torch.tensor(2.0) * 3)
    emit(print, torch.tensor([1, 2]).sum())
    return x + 1


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
    (asks, X),
    (asks, G),
    (constants, X),
    (only_output, X),
    (Outer(), G),
]
if mechanism.version() >= (2, 12):  # before, AOTAutograd loses effects there: output breaks the graph
    IN_ONE_GRAPH.append((custom_gradient, G))


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


def test_on_a_torch_without_the_mechanism_output_breaks_the_graph(check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from graphmend.runtime import mechanism

    monkeypatch.setattr(mechanism, "available", False)
    for program in (prints, formats, scalars, mutates, Outer()):
        assert check(program, X, backend="eager") > 0
