"""Numbers that tensors decide stay in the graph where that holds; where not, nothing differs from plain Python."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

torch = pytest.importorskip("torch")
switches = pytest.importorskip("graphmend.runtime.switches")
if switches.version() < switches.OLDEST or sys.version_info < switches.OLDEST_PYTHON:
    pytest.skip("the switches are measured with other versions", allow_module_level=True)
F = torch.nn.functional

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("captures")]

ALL, ONE, TWO = torch.ones(5, dtype=torch.bool), torch.arange(5) == 2, torch.arange(5) < 2


def outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """What a call gives, what it leaves its arguments as, and the state of the generator behind it."""
    torch.manual_seed(3)
    copies = [a.clone() if isinstance(a, torch.Tensor) else a for a in arguments]
    result = function(*copies)
    assert torch.is_grad_enabled()
    assert not torch.is_autocast_enabled("cpu")
    return result, copies, torch.rand(2)


def graphs(function: Callable[..., Any], *calls: tuple[Any, ...], backend: Any = None) -> list[int]:
    """How many graphs each call adds. Every call does what it does in plain Python."""
    seen: list[Any] = []

    def count(graph: Any, inputs: Any) -> Any:
        seen.append(graph)
        return torch._dynamo.lookup_backend(backend)(graph, inputs) if backend else graph.forward

    compiled = torch.compile(function, backend=count)
    numbers = []
    for arguments in calls:
        before = len(seen)
        torch.testing.assert_close(outcome(compiled, arguments), outcome(function, arguments), rtol=0, atol=0)
        numbers.append(len(seen) - before)
    return numbers


def x() -> Any:
    return torch.arange(1.0, 6)


def reasons(part: str) -> list[str]:
    return [reason for _, _, function, reason in switches.taken_back() if part in function]


# Captured


def test_one_graph_for_all_values() -> None:
    def function(x: Any, n: Any) -> Any:
        return x[: n.sum().item()].sum() + x.mean().item() * x

    assert graphs(function, *((x(), torch.tensor([n, 0])) for n in (3, 4, -2, 9, 1, 0))) == [1, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("backend", [None, "aot_eager"])
def test_numbers_that_operations_read_out_of_tensors(backend: str | None) -> None:
    def padded(x: Any, n: Any) -> Any:
        return F.pad(x, (n + 1, n)).cumsum(0)

    def repeated(x: Any, n: Any) -> Any:
        return torch.stack([torch.arange(n), torch.arange(n)], -1).repeat(n + 1, 1) * 2, x + n

    def positions(x: Any, n: Any) -> Any:
        rows = torch.arange(n).unsqueeze(1).expand(-1, n + 1)
        columns = torch.arange(n + 1).unsqueeze(0).expand(n, -1)
        return torch.stack([rows.flatten(), columns.flatten()], -1).repeat(n, 1).float().mean(0), x[:1]

    for function in (padded, repeated, positions):
        calls = [(x(), torch.tensor(n)) for n in (3, 2, 4)]
        assert graphs(function, *calls, backend=backend) == [1, 0, 0], function


# A graph that cannot go on


def test_the_programs_code_runs_where_a_graph_cannot_go_on() -> None:
    def wrong_size(x: Any, m: Any) -> Any:
        return x[m] + x

    calls = [(x(), m) for m in (ALL, ONE, ALL, ONE)]
    assert graphs(wrong_size, *calls) == [1, 1, 1, 0], (
        "one; that of the code as it was, which reads a size in front; again for a size that changes"
    )
    assert "could not go on" in reasons("wrong_size")[0]


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_on_other_backends(backend: str) -> None:
    def function(x: Any, m: Any) -> Any:
        return (x[m] + x) * 2

    graphs(function, (x(), ALL), (x(), ONE), backend=backend)


def test_all_kinds_of_parameters_and_a_closure() -> None:
    scale, offsets = 3, [1.0]

    def function(x: Any, /, m: Any, *rest: Any, factor: float, **more: Any) -> Any:
        def inner() -> Any:
            return x * factor

        offsets.append(offsets[-1])
        return x[m] + x * scale + offsets[0] + inner() + sum(rest) + more["bias"]

    compiled = torch.compile(function, backend="eager")
    for m in (ALL, ONE, ALL):
        values = (x(), m, x(), x() + 1)
        count = len(offsets)
        got = compiled(*values, factor=2.0, bias=x())
        assert len(offsets) == count + 1, "its effects on Python objects happen once"
        torch.testing.assert_close(got, function(*values, factor=2.0, bias=x()))


def test_a_method_and_its_buffers() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(5))

        def forward(self, x: Any, m: Any) -> Any:
            self.seen += x
            return super().__repr__().count("Model") + x[m] + x + self.seen

    one, other = Model(), Model()
    compiled = torch.compile(one, backend="eager")
    for m in (ALL, ONE, ALL):
        torch.testing.assert_close(compiled(x(), m), other(x(), m))
        torch.testing.assert_close(one.seen, other.seen)


def test_what_the_graph_wrote_is_put_back() -> None:
    def function(x: Any, m: Any) -> Any:
        x.mul_(2)
        x[1:].add_(1)
        return x[m] + x

    assert graphs(function, (x(), ALL), (x(), ONE))[0] == 1


@pytest.mark.parametrize("write", [lambda x: x.data.add_(1), lambda x: torch._foreach_add_([x], 1.0)])
def test_what_no_version_counts_is_put_back(write: Callable[[Any], Any]) -> None:
    def f(x: Any, m: Any) -> Any:
        write(x)
        return x + torch.ones(m.nonzero().shape[0])

    compiled = torch.compile(f, backend="eager")
    for count in (4, 4, 1):
        x = torch.zeros(4)
        assert compiled(x, torch.arange(4) < count).tolist() == [2.0] * 4
        assert x.tolist() == [1.0] * 4


def test_running_statistics_are_put_back() -> None:
    def function(x: Any, m: Any, mean: Any, var: Any) -> Any:
        y = F.batch_norm(x[None, :, None].expand(2, 5, 3), mean, var, training=True)
        return y.sum() + x[m] + x

    assert graphs(function, *((x(), m, torch.zeros(5), torch.ones(5)) for m in (ALL, ONE)))[0] == 1


def test_draws_and_modes_are_put_back() -> None:
    def function(x: Any, m: Any) -> Any:
        y = F.dropout(x, 0.5)
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            return y + torch.rand(5) + (x[m] + x)

    assert graphs(function, (x(), ALL), (x(), ONE))[0] == 1


def test_draws_on_the_host_are_put_back() -> None:
    numpy = pytest.importorskip("numpy")
    from graphmend.runtime import on_host

    def drawn(size: tuple[int]) -> Any:
        return numpy.random.rand(*size) + random.random()

    def wrong_size(x: Any, m: Any) -> Any:
        noise = torch.from_numpy(on_host((5,), torch.float64, drawn, (5,)))
        return x[m] + x + noise

    def seeded(function: Callable[..., Any], m: Any) -> Any:
        numpy.random.seed(1)
        random.seed(1)
        return outcome(function, (x(), m)), numpy.random.rand(), random.random()

    compiled = torch.compile(wrong_size, backend="eager")
    for mask in (ALL, ONE, ALL):
        (want, *numbers), (got, *others) = seeded(wrong_size, mask), seeded(compiled, mask)
        torch.testing.assert_close(got, want, rtol=0, atol=0)
        assert numbers == others
    assert "could not go on" in reasons("wrong_size")[0]


def test_levels_of_vmap_are_taken_off() -> None:
    def function(x: Any, m: Any) -> Any:
        part = x[m]
        rows = torch.vmap(torch.vmap(lambda each: each + 1))(torch.stack([x, x + 2]))
        return torch.vmap(lambda row: row * 2 + part)(rows)

    assert graphs(function, (x(), ALL), (x(), ONE))[0] == 1
    assert torch._C._functorch.get_dynamic_layer_stack_depth() == 0


def test_what_is_asked_of_the_elements_of_a_list_is_checked() -> None:
    def function(x: Any, rows: Any) -> Any:
        first, second = (rows > 0).sum(1).tolist()
        torch._check(first == second)
        return x * 2 + first

    one, two = (torch.tensor(rows) for rows in ([[1.0, -1], [-1, 1]], [[1.0, 1], [1, 1]]))
    assert graphs(function, (x(), one), (x(), two)) == [1, 0]
    with pytest.raises(RuntimeError):
        torch.compile(function, backend="eager")(x(), torch.tensor([[1.0, -1], [1, 1]]))


def test_sizes_that_a_reshape_divides() -> None:
    def function(x: Any, m: Any) -> Any:
        batch, _, width = x.shape
        m = m > 0.5
        seen, hidden = x[~m].reshape(batch, -1, width), x[m].reshape(batch, -1, width)
        both = torch.cat([seen, hidden], dim=1)
        return both.view(batch, both.shape[1], 2, -1).transpose(1, 2) * 2

    rows = torch.arange(48.0).view(2, 6, 4)
    masks = [(torch.arange(12).view(2, 6) % 6 < n).float() for n in (4, 3)]
    assert graphs(function, *((rows, m) for m in masks)) == [1, 0]


def test_numbers_that_are_added_in_an_assertion() -> None:
    def function(x: Any, rows: Any) -> Any:
        first, second, third = (rows > 0).sum(1).tolist()
        torch._check(first + second + third == 4)
        return x * 2 + first

    one, two = (torch.tensor(rows) for rows in ([[1.0, 1], [-1, 1], [1, -1]], [[1.0, -1], [1, 1], [-1, 1]]))
    assert graphs(function, (x(), one), (x(), two)) == [1, 0]
    with pytest.raises(RuntimeError):
        torch.compile(function, backend="aot_eager")(x(), -one)


def test_gradients() -> None:
    def function(x: Any, m: Any) -> Any:
        return (x[m] * 2 + x).sum()

    compiled = torch.compile(function, backend="aot_eager")
    for m in (ALL, ONE):
        one, other = x().requires_grad_(), x().requires_grad_()
        compiled(one, m).backward()
        function(other, m).backward()
        torch.testing.assert_close(one.grad, other.grad)


@pytest.mark.parametrize("of", [lambda n: n, lambda n: n * 1], ids=["input", "result"])
def test_a_number_is_checked_as_it_was_read(of: Callable[[Any], Any]) -> None:
    def function(x: Any, n: Any) -> Any:
        n = of(n)
        count = n.item()
        n.mul_(0).sub_(7)
        return x + torch.ones(count)

    graphs(
        function,
        *(
            (
                x(),
                torch.tensor([n]),
            )
            for n in (5, 1, 5)
        ),
    )


def test_the_programs_own_error_is_the_one_that_is_raised() -> None:
    def own_error(x: Any, n: Any) -> Any:
        torch._check(n.sum().item() < 5, lambda: "too many")
        return x * 2

    compiled = torch.compile(own_error, backend="eager")
    torch.testing.assert_close(compiled(x(), torch.tensor([1, 2])), x() * 2)
    with pytest.raises(RuntimeError, match="too many") as caught:
        compiled(x(), torch.tensor([4, 2]))
    assert caught.value.__context__ is None
    torch.testing.assert_close(compiled(x(), torch.tensor([1, 1])), x() * 2)


# Not captured


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_output_is_made_once_and_as_it_was_where_it_stood(backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    from graphmend.runtime import emit

    def function(x: Any, m: Any) -> Any:
        total = x * 1
        emit(print, "before", total)
        total += x[m] + x
        emit(print, "behind", total.sum())
        return total

    compiled = torch.compile(function, backend=backend)
    for m in (ALL, ONE, ALL):
        function(x(), m)
        expected = capsys.readouterr().out
        compiled(x(), m)
        assert capsys.readouterr().out == expected
    assert "could not go on" in reasons("function")[0]


@pytest.mark.parametrize("error", [torch.OutOfMemoryError, KeyboardInterrupt])
def test_output_of_a_graph_that_ends_for_good_is_made(error: type[BaseException], capsys: Any) -> None:
    from graphmend.runtime.captures.recovery import Recovery
    from graphmend.runtime.templates import sites

    def compiled(_: Any) -> Any:
        sites.make([lambda: print("said")])
        assert not capsys.readouterr().out
        raise error

    inner = Recovery(torch.fx.symbolic_trace(lambda x: x + 1), print).around(compiled)
    with pytest.raises(error):
        inner(x())
    assert capsys.readouterr().out == "said\n"


def test_output_does_not_keep_a_number_out_of_the_graph(capsys: pytest.CaptureFixture[str]) -> None:
    from graphmend.runtime import emit

    def function(x: Any, n: Any) -> Any:
        emit(print, "here")
        return x[: n.sum().item()].sum() + x

    assert graphs(function, *((x(), torch.tensor([n, 0])) for n in (3, 4, 1))) == [1, 0, 0]
    assert capsys.readouterr().out == "here\n" * 6


def test_a_graph_that_leaves_too_much_behind_captures_nothing() -> None:
    def leaving(x: Any, m: Any, cache: Any) -> Any:
        cache.add_(1)
        return x[m] + x

    assert graphs(leaving, *((x(), m, torch.zeros(1 << 17)) for m in (ALL, ONE)))[0] == 2
    assert any("too large" in reason for reason in reasons("leaving"))


def test_arithmetic_that_may_raise_is_pythons() -> None:
    def divided(x: Any, n: Any) -> Any:
        return x * (1 / n.sum().item())

    compiled = torch.compile(divided, backend="aot_eager")
    torch.testing.assert_close(compiled(x(), torch.tensor([1, 1])), x() * 0.5)
    with pytest.raises(Exception, match="division by zero"):
        compiled(x(), torch.tensor([0, 0]))
    assert reasons("divided")


def test_a_number_that_must_be_known_breaks_where_it_is_read_and_others_stay() -> None:
    def function(x: Any, n: Any) -> Any:
        mean = x.mean().item()
        count = n.sum().int().item()
        y = x + mean
        for _ in range(count):
            y = y * 2
        return y + x.sum().item()

    assert graphs(function, *((x(), torch.tensor([n, 0.0])) for n in (2, 3))) == [2, 1]


def test_no_more_graphs_than_without_us() -> None:
    def inner(x: Any, count: Any) -> Any:
        y = x + 1
        if count > 2:
            y = y * 2
        return y - 1

    def function(x: Any, n: Any) -> Any:
        count = n.sum().int().item()
        for _ in range(2):
            x = inner(x, count)
        return x

    assert graphs(function, (x(), torch.tensor([3.0, 0]))) == [2], "one up to the number, one behind it"


def test_values_are_taken_as_known_until_a_call_has_others() -> None:
    def sized(x: Any, sizes: Any) -> Any:
        return torch.cat([part * n for n, part in enumerate((x * 2).split(sizes.tolist()))])

    calls = [(x(), torch.tensor(sizes)) for sizes in ([2, 3], [2, 3], [1, 4], [3, 2], [4, 1], [2, 3])]
    added = graphs(sized, *calls)
    assert added[:2] == [1, 0]
    assert sum(added) <= 1 + sum(plain_graphs(sized, *calls)), "at most one more than without us"
    assert any("a call had others" in reason for reason in reasons("sized"))


def plain_graphs(function: Callable[..., Any], *calls: tuple[Any, ...], inside: tuple[Any, ...] = ()) -> list[int]:
    from graphmend.runtime.captures import attempt

    torch._dynamo.reset()
    for each in (function, *inside):
        attempt.plan_of(each.__code__).give_up()
    return graphs(function, *calls)


def test_a_frame_that_captures_nothing_is_traced_once() -> None:
    """Without the switches it would break at the same place."""

    def looped(x: Any) -> Any:
        for _ in range(3):
            if x.sum() > 40:
                break
            x = x + 1
        return x

    def traced(calls: Callable[[], list[int]]) -> int:
        translator = torch._dynamo.symbolic_convert.InstructionTranslator
        with mock.patch.object(translator, "run", autospec=True, side_effect=translator.run) as run:
            assert calls() == [0]
        return int(run.call_count)

    assert traced(lambda: graphs(looped, (x(),))) == traced(lambda: plain_graphs(looped, (x(),))) > 0


def test_a_frame_that_captures_in_vain_is_traced_again() -> None:
    """The loop needs the number, so all of it is as without the switches."""

    def looped(x: Any, n: Any) -> Any:
        for _ in range(int(n.sum()) + 1):
            x = x * 2
        return x

    calls = [(x(), torch.tensor([n, 7])) for n in (3, 4, 5)]
    assert sum(graphs(looped, *calls)) <= sum(plain_graphs(looped, *calls)) + 1


def test_what_only_reads_numbers_is_no_graph() -> None:
    """Neither is it one without us."""

    def read(v: Any) -> Any:
        return v[0].item()

    def numbers(v: Any) -> Any:
        return [each.item() for each in v]

    def different(v: Any) -> Any:
        return v.nonzero(), v.unique()

    def whole(v: Any) -> Any:
        return v.item()

    whole_number = torch.tensor(3)
    calls = ((read, x(), 1), (numbers, x().unbind(), 0), (different, x() - 3, 0), (whole, whole_number, 0))
    for function, argument, count in calls:
        assert graphs(function, (argument,), (argument,)) == [count, 0]
        assert sum(plain_graphs(function, (argument,))) == count


def test_what_stands_behind_a_break_is_compiled() -> None:
    """Also where all in front of it only reads numbers."""

    def picked(v: Any, w: Any) -> Any:
        v = v[v > 0]
        torch._dynamo.graph_break()
        return (v * w.sum()).relu().sum()

    calls = [(x() - k, x()) for k in (1, 2, 3)]
    assert graphs(picked, *calls)[0] == 2  # `v > 0`, and the rest
    wrapped = torch.compile(torch.nonzero, backend="eager")
    assert wrapped(x()).shape == (5, 1)
    seen: list[Any] = []
    linear = torch.compile(torch.nn.Linear(3, 3), backend=lambda graph, _: seen.append(graph) or graph.forward)
    linear(torch.ones(2, 3))
    assert len(seen) == 1, "torch compiles both by one wrapper"


def cut_in_parts(x: Any, count: int) -> Any:
    ends = torch.linspace(0, 5, count + 1, dtype=torch.int)
    for i in range(count):
        x[ends[i] : ends[i + 1]] = i
    return x


@pytest.mark.parametrize(
    "counted",
    [
        lambda x, count: (count, x),
        lambda x, count: ([0] * count, x),
        lambda x, count: ((1, count), x),
        lambda x, count: (x.new_zeros(count), x),
        lambda x, count: ({"count": count}, x),
    ],
    ids=["number", "list", "entry", "shape", "key"],
)
def test_a_loop_is_compiled_for_two_lengths_at_most(counted: Any) -> None:
    """Without us the graph breaks in it, so that it is not compiled at all."""

    def cut(by: Any, x: Any) -> Any:
        match by:
            case int():
                rounds = by
            case tuple():
                rounds = by[1]
            case dict():
                rounds = by["count"]
            case _:
                rounds = len(by)
        for i in range(rounds):
            end = int(x.sum().item())
            x = x[:end].cumsum(0) + i
        return x

    lengths = (3, 5, 2, 4, 1, 3, 5)
    calls = [counted(x(), count) for count in lengths]
    assert graphs(cut, *calls) == [1, 1, 0, 0, 0, 0, 0]
    assert "it would be compiled anew for each" in reasons("cut")[-1]
    assert plain_graphs(cut, *calls) == [0] * len(lengths)


def test_a_step_that_a_tensor_of_the_graph_gives() -> None:
    def coordinates(v: Any) -> Any:
        count = torch.ones(4, dtype=torch.bool).sum()
        return v + torch.arange(0, 1 - 1e-6, 1 / count).sum()

    assert sum(graphs(coordinates, (x(),), (x() * 2,), backend="aot_eager")) > 0


def test_a_backend_that_fails_on_what_no_hook_has_seen() -> None:
    failures = [1]

    def backend(graph: Any, _: Any) -> Any:
        if failures:
            failures.pop()
            raise RuntimeError("a symbol of an operation of its own")
        return graph.forward

    compiled = torch.compile(lambda v: v + 1, backend=backend)
    torch.testing.assert_close(compiled(x()), x() + 1)
    failures += [1] * 9
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="of its own"):
        compiled(x())


def test_what_has_varied_is_not_taken_as_known_in_the_frames_inside() -> None:
    """Each frame that breaks leaves others, which would be compiled for the same values once more."""

    def masked(v: Any, mask: Any) -> Any:
        return None if torch.all(mask == 1) else mask

    def inner(v: Any, mask: Any) -> Any:
        v = v * 2
        kept = masked(v, mask)
        return v - 1 if kept is None else v * kept

    def middle(v: Any, mask: Any) -> Any:
        return inner(v + 1, mask) - 1

    def outer(v: Any, mask: Any) -> Any:
        return middle(v.relu(), mask) + 1

    calls = [(x(), (torch.arange(5) < n).long()) for n in (5, 3, 4, 5, 2, 1)]
    added = graphs(outer, *calls)
    assert added[0] == 1
    assert sum(added) <= 1 + sum(plain_graphs(outer, *calls, inside=(middle, inner, masked)))
