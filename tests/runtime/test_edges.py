"""What the graph cannot carry still prints; nothing leaks, nothing is mixed up between threads."""

from __future__ import annotations

import gc
import sys
import threading
import warnings
import weakref
from collections import OrderedDict
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from graphmend.runtime import mechanism  # noqa: E402

if tuple(map(int, torch.__version__.split(".")[:2])) < mechanism.OLDEST:
    pytest.skip("the runtime keeps no output in the graph of this torch", allow_module_level=True)

from outputs import Writer, printing  # noqa: E402

from graphmend.runtime import emit, emit_when, select  # noqa: E402

pytestmark = pytest.mark.torch

X = torch.arange(6.0).reshape(2, 3)
G = torch.arange(6.0).reshape(2, 3).requires_grad_()


first = printing("first")
writer = Writer()


class Stranger:
    def __repr__(self) -> str:
        return "stranger"


stranger = Stranger()


@pytest.mark.parametrize("kind", ["object", "ordered dictionary", "array", "vmap", "checkpoint"])
def test_what_the_graph_cannot_carry_breaks_it_and_still_prints(check: Any, kind: str) -> None:

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


class Holds:
    last: Any = None


holds = Holds()


@pytest.mark.parametrize("second", ["a view", "another part", "itself", "kept"])
def test_inputs_that_share_memory_may_be_written_to(second: str) -> None:
    """AOTAutograd 2.13 loses the tokens of effects where it makes one base of such inputs."""

    def program(a: Any, b: Any) -> Any:
        c = holds.last if second == "kept" else b
        emit(print, c.sum())
        a[0] = 1.0
        return a.sum() + c

    def given() -> tuple[Any, Any]:
        y = X.clone()
        holds.last = y[:1]
        return {"a view": (y, y[:1]), "another part": (y[:1], y[1:]), "itself": (y, y), "kept": (y, X)}[second]

    shared = second in ("a view", "kept")
    compiled = torch.compile(program, backend="aot_eager", fullgraph=not shared)
    assert torch.equal(compiled(*given()), program(*given()))


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


class Doubled(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, x: Any) -> Any:
        return x * 2


def test_what_a_mend_has_made_functions_of_is_not_compiled_on_its_own() -> None:
    from torch._dynamo.testing import CompileCounter

    torch._dynamo.reset()
    counter, module = CompileCounter(), Doubled()

    def program(x: Any) -> Any:
        for _ in range(2):
            torch._dynamo.graph_break()  # the whole frame runs in plain Python
            y = select(x.sum() > 0, lambda: x * 2, lambda: x + 1)
            emit_when(x.sum() > 0, print, lambda: (x * 3,), end="")
        return y, select(x.sum() > 0, lambda: module(x), lambda: x)

    torch.compile(program, backend=counter)(X)
    assert counter.frame_count == 1  # the module, which would be one in a branch as well


def side() -> Any:
    return X * 2


def test_a_function_of_the_programs_own_is_compiled_where_it_says_so() -> None:
    from torch._dynamo.testing import CompileCounter

    torch._dynamo.reset()
    counter = CompileCounter()
    assert select(True, side, side).equal(X * 2)
    torch.compile(side, backend=counter)()
    assert counter.frame_count == 1
