"""Programs whose sizes and branches hang on small integer inputs compile whole, and hold for other inputs as well."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import pytest

torch = pytest.importorskip("torch")
switches = pytest.importorskip("graphmend.runtime.switches")
if switches.version() < switches.OLDEST:
    pytest.skip("the switches are measured with newer versions of torch", allow_module_level=True)
checkpoint = pytest.importorskip("torch.utils.checkpoint").checkpoint
attempts = pytest.importorskip("graphmend.runtime.captures.attempt")

from .conftest import passes_once  # noqa: E402 (behind what skips the file)

pytestmark = pytest.mark.torch

Inputs = tuple[Any, ...]


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    if not switches.install(specialise=True, passes=passes_once):
        pytest.skip("this torch is not known")
    torch._dynamo.reset()
    yield
    switches.uninstall()
    torch._dynamo.reset()


def graphs(function: Callable[..., Any], *calls: Inputs, backend: Any = None, dynamic: bool | None = None) -> list[int]:
    """How many graphs each call of a function adds. Every call gives what plain Python gives."""
    seen: list[Any] = []

    def count(graph: Any, _: Any) -> Any:
        seen.append(graph)
        return graph.forward

    compiled = torch.compile(function, backend=backend or count, dynamic=dynamic)
    numbers = []
    for arguments in calls:
        before = len(seen)
        copies = [a.clone() for a in arguments]
        torch.testing.assert_close(compiled(*copies), function(*(a.clone() for a in arguments)))
        numbers.append(len(seen) - before)
    return numbers


def grids(x: Any, grid: Any) -> Any:
    parts = []
    for frames, height, width in grid.tolist():
        rows = x[: frames * height * width].reshape(frames * height, width)
        parts.append(rows.sum(1) if height > 2 else rows.mean(1))
    return torch.cat(parts)


def picked(x: Any, mask: Any) -> Any:
    kept = x[mask == 1]
    return kept * 2 if kept.shape[0] > 3 else kept.reshape(-1)


def branched(x: Any, mask: Any) -> Any:
    return x * 2 if torch.all(mask == 1) else x - 1


def chained(x: Any, mask: Any) -> Any:
    whole = torch.all(mask == 1) and x.shape[0] > 2
    return x * 2 if whole or mask[1] == 0 else x - 1


def repeated(x: Any, grid: Any) -> Any:
    ends = torch.repeat_interleave(grid[:, 1], grid[:, 0]).cumsum(0)
    return torch.stack([part.sum() for part in x.split(torch.diff(ends, prepend=ends.new_zeros(1)).tolist())])


def resized(x: Any, sizes: Any) -> Any:
    images = [
        torch.nn.functional.interpolate(x[None, None], size=(n, n), mode="bilinear", align_corners=True) for n in sizes
    ]
    return torch.stack([image.sum() for image in images])


def written(x: Any, sizes: Any) -> Any:
    sizes = sizes + 1
    first = sizes[:1]
    sizes.mul_(2)
    return x * 2 if first.item() > 5 else x + 1


def overwritten(x: Any, sizes: Any) -> Any:
    size, zero = sizes.max(), sizes.min() * 1
    zero.zero_()
    number = size.item()
    size.mul_(2)
    x = x * 2 if zero else x + 1
    x = x * 3 if number > 4 else x + 2
    return x * 4 if size > 9 else x + 3


GRIDS = [torch.tensor([[1, 2, 3], [1, 4, 2]]), torch.tensor([[1, 4, 4], [2, 2, 2]])]
MASKS = [torch.tensor([1, 1, 0, 1, 1, 0, 0, 0]), torch.tensor([0, 1, 0, 1, 0, 0, 1, 0])]
SIZES = [torch.tensor([1, 5, 4]), torch.tensor([3, 2, 1])]


@pytest.mark.parametrize(
    ("function", "shape", "values"),
    [
        (grids, (32,), GRIDS),
        (picked, (8, 2), MASKS),
        (branched, (8,), [torch.ones(8, dtype=torch.long), MASKS[0]]),
        (chained, (8,), [torch.ones(8, dtype=torch.long), MASKS[0]]),
        (repeated, (6,), [torch.tensor([[2, 1], [1, 4]]), torch.tensor([[1, 2], [2, 2]])]),
        (resized, (4, 8), SIZES),
        (written, (4, 8), SIZES),
        (overwritten, (4, 8), SIZES),
    ],
)
def test_one_graph_for_the_values_at_hand_and_another_for_others(
    function: Callable[..., Any], shape: tuple[int, ...], values: list[Any]
) -> None:
    one, other = ((torch.randn(shape), value) for value in values)
    assert graphs(function, one, (torch.randn(shape), values[0]), other, one) == [1, 0, 1, 0]


def test_nothing_is_held_that_nobody_needs() -> None:
    def function(x: Any, mask: Any) -> Any:
        return x * mask.sum().item()

    assert graphs(function, *((torch.randn(8), mask) for mask in MASKS)) == [1, 0]


def test_only_the_inputs_that_decide_are_held() -> None:
    def function(x: Any, ids: Any, mask: Any) -> Any:
        return x[ids][mask == 1].reshape(4, -1)

    calls = [(torch.randn(9, 2), torch.randint(9, (8,)), MASKS[0]) for _ in range(3)]
    assert graphs(function, *calls) == [1, 0, 0]


def test_values_that_keep_changing_are_no_longer_held() -> None:
    def function(x: Any, mask: Any, other: Any) -> Any:  # what two inputs decide is asked of neither
        return x * 2 if (mask + other).sum() > 3 else x + 1

    seen: list[Any] = []

    def count(graph: Any, _: Any) -> Any:
        seen.append(graph)
        return graph.forward

    def added(function: Callable[..., Any], value: int) -> int:
        before = len(seen)
        function(torch.ones(8), torch.tensor([value]), torch.tensor([0]))
        return len(seen) - before

    one = torch.compile(function, backend=count)
    other = torch.compile(function, backend=lambda *args: count(*args))  # one with the same backend shares the graphs
    assert [added(one, i) for i in range(attempts.COMPILATIONS)] == [1] * attempts.COMPILATIONS
    assert sum(added(one, 10 + i) for i in range(8)) == 2, "a graph before the branch, and one after it"
    assert added(other, 20) == 1, "another one that is compiled has a number of its own"
    torch._dynamo.reset()
    assert [added(one, 30 + i) for i in range(2)] == [1, 1]


def masks(*rows: list[int]) -> list[Inputs]:
    return [(torch.randn(4), torch.tensor(row)) for row in rows]


@pytest.mark.parametrize("specialise", [True, False])
def test_values_that_decide_the_same_are_the_same(specialise: bool) -> None:
    switches.install(specialise=specialise)
    calls = masks([1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1], [0, 1, 0, 0], [1, 1, 1, 1], [1, 1, 0, 0])
    assert graphs(branched, *calls) == [1, 1, 0, 0, 0, 0, 0], "both answers, whatever the paddings are"


def test_sizes_that_decide_the_same_are_the_same() -> None:
    def function(x: Any, mask: Any) -> Any:
        kept = x[mask == 1]
        return kept * 2 if kept.shape[0] > 1 else kept.reshape(-1)

    calls = masks([1, 1, 0, 0], [0, 1, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 1])
    assert graphs(function, *calls) == [1, 0, 1, 0, 0]


def test_a_third_set_of_answers_is_taken_back() -> None:
    switches.install()

    def function(x: Any, mask: Any) -> Any:
        x = x * 2 if mask.any() else x - 1
        return x * 3 if mask.all() else x - 2

    calls = masks([1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1], [0, 0, 0, 0])
    found = graphs(function, *calls)
    torch._dynamo.reset()
    with mock.patch.object(attempts, "plan_of", lambda code: attempts.Plan(code, is_plain=True)):
        plain = graphs(function, *calls[3:])
    assert found == [1, 0, 1, *plain], "two sets of answers, then as without us"
    assert [note.reason for note in attempts.taken_back if note.function == "function"][-1:] == [attempts._CHANGED]


def test_a_question_that_raises_for_other_values_is_asked_by_the_program() -> None:
    def function(x: Any, places: Any) -> Any:
        known = torch.arange(4)
        return x * 2 if known[places].sum() > 3 else x - 1

    compiled = torch.compile(function, backend="eager")
    x = torch.randn(4)
    assert torch.equal(compiled(x, torch.tensor([3, 3])), x * 2)
    with pytest.raises((IndexError, RuntimeError)):
        compiled(x, torch.tensor([9, 3]))


@pytest.mark.parametrize(
    "test",
    [
        lambda m: m.any(),
        lambda m: m.bool().any().item(),
        lambda m: bool(m.any()),
        lambda m: (m > 0).any() and (m > 0).any(),
        lambda m: m.bool().any().reshape(1).tolist()[0],
    ],
    ids=["tensor", "item", "bool", "twice", "list"],
)
def test_both_answers_of_a_truth_are_compiled(test: Callable[[Any], Any]) -> None:
    switches.install()

    def function(x: Any, mask: Any) -> Any:
        x = x * 2
        return x + 1 if test(mask) else x - 1

    calls = masks([1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0])
    assert graphs(function, *calls) == [1, 0, 1, 0, 0]


@pytest.mark.parametrize(
    "draw",
    [
        lambda n: torch.zeros(1).uniform_(),
        lambda n: torch.nn.init.uniform_(torch.zeros(1)),
        lambda n: n.clone().random_(0, 2),
        lambda n: n.float().uniform_(),
        lambda n: torch.rand(4, out=torch.zeros(4)),
        lambda n: torch.randint(0, 2, (4,), out=n.clone()),
    ],
    ids=["uniform_", "init", "random_", "of_an_input", "out", "out_of_an_input"],
)
def test_what_is_drawn_is_not_known(draw: Callable[[Any], Any]) -> None:
    def function(x: Any, n: Any) -> Any:
        return x * 2 if draw(n).float().mean() < 0.5 else x - 1

    compiled = torch.compile(function, backend="eager")
    for number, (x, n) in enumerate(masks([1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [1, 1, 0, 0]) * 4):
        torch.manual_seed(number)
        wanted, then = function(x, n.clone()), torch.rand(1)
        torch.manual_seed(number)
        assert torch.equal(compiled(x, n.clone()), wanted)
        assert torch.equal(torch.rand(1), then), "no guard draws"


def normalised(x: Any, mean: Any) -> Any:
    torch.nn.functional.batch_norm(x[:, None], mean, torch.ones(1), training=True, momentum=1.0)
    return mean


@pytest.mark.parametrize(
    ("change", "calls"),
    [
        (lambda x, n, m: ((z := torch.zeros(4)), torch.mul(x, 2, out=z), z)[2], [(1, [1], [0, 0]), (-1, [1], [0, 0])]),
        (lambda x, n, m: normalised(x, torch.zeros(1)), [(1, [1], [0, 0]), (-1, [1], [0, 0])]),
        (lambda x, n, m: (n[0].add_(1), n[1].sum())[1] - 3, [(1, [[0, 0, 1]], [0]), (1, [[-1, 0, 0]], [0])]),
        (lambda x, n, m: (m.add_(5), n.sum())[1] - 3, [(1, [1, 0], [0, 0]), (1, [0, 1], [0, 0])]),
    ],
    ids=["unknown", "statistics", "overlapping", "apart"],
)
def test_writes_to_what_is_known_or_may_be(change: Callable[..., Any], calls: list[Any]) -> None:
    def function(x: Any, n: Any, m: Any) -> Any:
        return x * 2 if (change(x, n, m) > 0).any() else x - 1

    compiled = torch.compile(function, backend="eager")
    for number, rows, others in calls * 2:
        for shared in (False, True):
            answers = []
            for run in (function, compiled):
                n = torch.tensor(rows)
                n = n.expand(2, 3) if n.dim() > 1 else n
                m = n[:2] if shared and n.dim() == 1 else torch.tensor(others)
                answers.append(run(torch.full((4,), float(number)), n, m))
            assert torch.equal(*answers)


def test_guards_call_no_hooks_and_say_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    def function(x: Any, places: Any) -> Any:
        return x * 2 if torch.arange(4)[places].sum() > 3 else x - 1

    compiled, seen = torch.compile(function, backend="eager"), []
    x = torch.randn(4)
    for places in ([3, 3], [0, 1], [2, 3]):
        compiled(x, torch.tensor(places))
    handle = torch.nn.modules.module.register_module_forward_hook(lambda *call: seen.append(call))
    try:
        for places in ([3, 2], [1, 1], [9, 3]):
            try:
                wanted = function(x, torch.tensor(places))
            except IndexError:
                with pytest.raises(IndexError):
                    compiled(x, torch.tensor(places))
            else:
                assert torch.equal(compiled(x, torch.tensor(places)), wanted)
    finally:
        handle.remove()
    assert not seen
    assert capfd.readouterr().err == ""


counted: list[Any] = []
library = torch.library.Library("graphmend_tests_counted", "DEF")
library.define("twice(Tensor n) -> Tensor")
library.impl("twice", lambda n: (counted.append(1), n * 2)[1], "CompositeImplicitAutograd")


def test_operators_of_the_program_are_not_run_again() -> None:
    def function(x: Any, n: Any) -> Any:
        return x * 2 if torch.ops.graphmend_tests_counted.twice.default(n).sum() > 3 else x - 1

    compiled = torch.compile(function, backend="eager")
    for x, n in masks([1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0]) * 2:  # plain Dynamo runs it more often in the first
        compiled(x, n)
    counted.clear()
    for x, n in masks([1, 1, 1, 0], [0, 0, 1, 0]):
        compiled(x, n)
    assert len(counted) == 2


def test_where_compiling_anew_is_an_error_nothing_is_taken_as_known() -> None:
    switches.install()
    with torch._dynamo.config.patch(error_on_recompile=True):
        graphs(branched, *masks([1, 1, 1, 1], [1, 1, 0, 0]))


def layer(x: Any) -> Any:
    return (x * 2).relu() + 1


def in_parts(x: Any, mask: Any) -> Any:
    for row in mask.unbind():
        x = layer(x) if (row == 1).all() else x - 1
    return x + 1 if x.sum() > 0 else x - 1


def test_a_frame_that_breaks_all_the_same_compiles_as_often_as_without_us() -> None:
    switches.install()
    calls = [(torch.ones(8), torch.tensor(mask)) for mask in ([[1], [0]], [[0], [1]], [[1], [1]])]
    with mock.patch.object(attempts, "plan_of", lambda code: attempts.Plan(code, is_plain=True)):
        plain = graphs(in_parts, *calls)
    assert plain == [1, 0, 0], "the loop runs in plain Python"
    torch._dynamo.reset()
    assert graphs(in_parts, *calls) == plain


def test_branches_on_what_is_not_known_hold_nothing() -> None:
    def function(y: Any) -> Any:
        y = y * 2
        return y + 1 if (y > 0).any() else y - 1

    lengths = (5, 7, 9, 11, 13, 14)
    assert graphs(function, *((torch.ones(n),) for n in lengths), dynamic=True) == [2, 0, 0, 0, 0, 0]
    assert not attempts.plan_of(function.__code__).compilations


@torch.library.custom_op("graphmend_tests::shift", mutates_args=("n",))  # type: ignore[untyped-decorator]
def shift(n: torch.Tensor) -> None:
    n.add_(5)


@shift.register_fake  # type: ignore[untyped-decorator]
def _(n: torch.Tensor) -> None:
    pass


def _numpy(write: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda n: write(n.numpy())


@pytest.mark.parametrize(
    "write",
    [
        lambda n: torch.nn.functional.relu(n, inplace=True),
        lambda n: torch.nn.ReLU(inplace=True)(n),
        lambda n: torch.nn.functional.hardtanh(n, 5, 9, True),
        lambda n: torch.ops.aten.add_.Tensor(n, 5),
        lambda n: torch.nn.functional.relu(n[:1], inplace=True),
        lambda n: torch.nn.functional.relu(n.data, inplace=True),
        lambda n: torch.nn.functional.relu(n.mul_(2).data, inplace=True),
        shift,
        lambda n: checkpoint(lambda k: k.add_(5), n, use_reentrant=False),
        _numpy(lambda a: operator.setitem(a, 0, 7)),
        _numpy(lambda a: a.fill(7)),
        _numpy(lambda a: operator.iadd(a, 7)),
    ],
)
@pytest.mark.parametrize("of", [lambda n: n, lambda n: n[1:], lambda n: n * 1], ids=["input", "view", "result"])
def test_no_write_is_missed(write: Callable[[Any], Any], of: Callable[[Any], Any]) -> None:
    def function(n: Any, x: Any) -> Any:
        n = of(n)
        write(n)
        return x + 1 if n.sum() > -2 else x - 1

    graphs(function, *((torch.tensor(values), torch.ones(3)) for values in ([-1, -1, -1], [-9, -9, -9])))


def test_inputs_that_share_their_memory() -> None:
    def function(n: Any, m: Any, x: Any) -> Any:
        n.mul_(2)
        torch.nn.functional.relu(m, inplace=True)
        return x + 1 if n.sum() > -1 else x - 1

    for other in (lambda n: n, lambda n: n[:1], lambda n: n.data):
        torch._dynamo.reset()
        n = torch.tensor([-1, 0])
        torch.testing.assert_close(
            torch.compile(function, backend="eager")(n, other(n), torch.ones(3)), torch.ones(3) + 1
        )


def test_values_are_known_in_inference_mode_or_the_graph_breaks() -> None:
    with torch.inference_mode():
        graphs(lambda n, x: x + 1 if n.add(1).relu_().sum() > 0 else x - 1, (torch.tensor([-1, -1]), torch.ones(3)))


@pytest.mark.parametrize(
    "test",
    [
        lambda x, n: (x > 0).sum() > 3,
        lambda x, n: torch.rand(()) < 0.5,
        lambda x, n: torch.empty(1).add_(n[0]) > 1,
        lambda x, n: (n * x[0]).sum() > 3,
    ],
    ids=["a_float", "random", "not_filled", "mixed"],
)
def test_what_the_inputs_do_not_decide_breaks_as_before(test: Callable[..., Any]) -> None:
    def function(x: Any, n: Any) -> Any:
        x = x + 1
        x = x * 2 if test(x, n) else x.mul(2)
        return x - 1

    assert graphs(function, (torch.randn(8), SIZES[0])) == [2]


def test_tensors_of_vmap_have_no_storage_to_ask_for() -> None:
    def function(x: Any, lengths: Any) -> Any:
        places = torch.arange(4)
        mask = torch.vmap(lambda row: torch.vmap(lambda column: _written(lengths, row) > column)(places))(
            torch.arange(lengths.shape[0])
        )
        return x * 2 if mask.any() else x - 1

    graphs(function, (torch.randn(8), torch.tensor([2, 3])), (torch.randn(8), torch.tensor([1, 4])))


def _written(lengths: Any, row: Any) -> Any:
    """The length of a row, plus 1, by a write under `torch.vmap`."""
    return lengths[row].clone().add_(1)


def test_inductor_takes_it() -> None:
    one, other = ((torch.randn(32), value) for value in GRIDS)
    graphs(grids, one, other, backend="inductor")
