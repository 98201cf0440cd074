"""Recurrent layers are one operation of the graph, and give what they give in plain Python."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
switches = pytest.importorskip("graphmend.runtime.switches")
if switches.version() < switches.OLDEST or sys.version_info < switches.OLDEST_PYTHON:
    pytest.skip("the switches are measured with other versions", allow_module_level=True)
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("captures")]

FORMS: list[dict[str, Any]] = [{}, {"batch_first": True}, {"num_layers": 2, "bidirectional": True}, {"bias": False}]


class Model(torch.nn.Module):
    def __init__(self, kind: str, **options: Any) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.layer = getattr(torch.nn, kind)(4, 4, **options)

    def forward(self, x: Any, state: Any = None) -> Any:
        if self.layer.hidden_size < 0:
            return x
        out, state = self.layer(x * 2, state)
        return out.relu() + 1, state


class Packed(Model):
    def forward(self, x: Any, lengths: Any) -> Any:
        out, _ = self.layer(pack_padded_sequence(x * 2, lengths, enforce_sorted=False))
        return pad_packed_sequence(out)[0] + 1


class Graphs:
    """Counts the graphs that a backend is given."""

    def __init__(self, backend: str = "eager") -> None:
        self.backend, self.operations = backend, list[list[str]]()

    def __call__(self, graph: Any, inputs: Any) -> Any:
        self.operations.append([str(node.target) for node in graph.graph.nodes])
        return torch._dynamo.lookup_backend(self.backend)(graph, inputs)


def leaves(value: Any) -> list[Any]:
    found: list[Any] = torch.utils._pytree.tree_leaves(value)
    return found


def trained(model: Any, call: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Results, and the gradients of all inputs and parameters."""
    given = [
        a.clone().requires_grad_() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in arguments
    ]
    model.zero_grad()
    torch.manual_seed(3)
    result = leaves(call(*given))
    sum(tensor.square().sum() for tensor in result).backward()
    inputs = [a.grad for a in given if isinstance(a, torch.Tensor) and a.is_floating_point()]
    return [*(t.detach() for t in result), *inputs, *(p.grad.clone() for p in model.parameters())]


def steps(count: int) -> Any:
    return torch.arange(count * 12.0).reshape(count, 3, 4).sin()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("options", FORMS, ids=str)
def test_one_graph_for_sequences_of_any_length(kind: str, options: dict[str, Any], backend: str) -> None:
    model, graphs = Model(kind, **options).eval(), Graphs(backend)
    compiled = torch.compile(model, backend=graphs)
    for count in (5, 7, 9):
        expected = trained(model, model, steps(count))
        torch.testing.assert_close(trained(model, compiled, steps(count)), expected)
        out, plain = compiled(steps(count))[0], model(steps(count))[0]
        assert out.stride() == plain.stride()
    assert len(graphs.operations) <= 4, "one length, then any, with gradients and without"
    assert all(any("graphmend" in name for name in graph) for graph in graphs.operations)


def test_a_layer_that_trains_breaks_the_graph_unless_its_forward_may_run_twice() -> None:
    model, graphs = Model("LSTM"), Graphs()
    compiled = torch.compile(model, backend=graphs)
    torch.testing.assert_close(trained(model, compiled, steps(5)), trained(model, model, steps(5)))
    assert not any("graphmend" in name for graph in graphs.operations for name in graph)
    before = len(graphs.operations)
    assert any(reason.startswith("a recurrent layer trains") for *_, reason in switches.taken_back())
    torch._dynamo.reset()
    switches.install(trains_whole=True)
    try:
        torch.testing.assert_close(trained(model, compiled, steps(5)), trained(model, model, steps(5)))
        assert len(graphs.operations) == before + 1
    finally:
        switches.install()


def test_a_state_that_is_handed_on() -> None:
    model, graphs = Model("LSTM", proj_size=2), Graphs()
    compiled = torch.compile(model, backend=graphs)
    _, state = model(steps(2))
    with torch.no_grad():
        torch.testing.assert_close(compiled(steps(5), state), model(steps(5), state), rtol=0, atol=0)
    assert len(graphs.operations) == 1


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_dropout_while_training_breaks_the_graph_and_draws_what_the_layer_draws(kind: str) -> None:
    model, graphs = Model(kind, num_layers=2, dropout=0.5), Graphs()
    compiled = torch.compile(model, backend=graphs)
    torch.testing.assert_close(trained(model, compiled, steps(5)), trained(model, model, steps(5)))
    assert not any("graphmend" in name for graph in graphs.operations for name in graph)
    path, _, function, reason = next(note for note in switches.taken_back() if "dropout" in note[3])
    assert (path, function) == (__file__, "forward")
    assert reason == "a recurrent layer draws for its dropout, and would draw again for its gradients"
    torch.testing.assert_close(torch.compile(model.eval(), backend=graphs)(steps(5)), model(steps(5)))


def test_packed_sequences_break_the_graph() -> None:
    model, lengths = Packed("GRU").eval(), torch.tensor([5, 3, 1])
    compiled = torch.compile(model, backend="eager")
    torch.testing.assert_close(trained(model, compiled, steps(5), lengths), trained(model, model, steps(5), lengths))
    assert any(reason == "a recurrent layer is given a packed sequence" for *_, reason in switches.taken_back())


def test_autocast_breaks_the_graph() -> None:
    model = Model("LSTM")
    with torch.autocast("cpu"):
        found, expected = torch.compile(model, backend="eager")(steps(5)), model(steps(5))
    assert [t.dtype for t in leaves(found)] == [t.dtype for t in leaves(expected)]
    torch.testing.assert_close(found, expected)


class Counts(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, weight: Any) -> Any:
        self.count += 1
        return weight * 2


def test_a_parametrized_layer_is_left_alone() -> None:
    counted = []
    for call in (lambda model: model, lambda model: torch.compile(model, backend="eager")):
        model = Model("GRU").eval()
        torch.nn.utils.parametrize.register_parametrization(model.layer, "weight_ih_l0", Counts())
        before = model.layer.parametrizations.weight_ih_l0[0].count.item()
        for count in (3, 4):
            call(model)(steps(count))
        counted.append(model.layer.parametrizations.weight_ih_l0[0].count.item() - before)
    assert counted[0] == counted[1]


@pytest.mark.parametrize("options", [{}, {"batch_first": True}], ids=str)
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_results_are_changed_in_place(kind: str, options: dict[str, Any]) -> None:
    class Changed(Model):
        def forward(self, x: Any, state: Any = None) -> Any:
            out, state = self.layer(x * 2, state)
            for one in state if isinstance(state, tuple) else (state,):
                one.mul_(2)
            return out + 1, state

    model = Changed(kind, **options).eval()
    compiled = torch.compile(model, backend="eager")
    torch.testing.assert_close(trained(model, compiled, steps(5)), trained(model, model, steps(5)))
    out, state = compiled(steps(5))
    for one in leaves((out, state)):
        one.detach_()
        one.mul_(2)


def test_a_gradient_of_a_gradient_raises() -> None:
    model, x = Model("GRU").eval(), steps(5).requires_grad_()
    out, _ = torch.compile(model, backend="eager")(x)
    (first,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="not differentiated"):
        torch.autograd.grad(first.sum(), x)


def test_a_cell_is_traced_as_ever() -> None:
    cell, graphs = torch.nn.LSTMCell(4, 4), Graphs()
    torch.testing.assert_close(torch.compile(cell, backend=graphs)(steps(1)[0]), cell(steps(1)[0]))
    assert len(graphs.operations) == 1
