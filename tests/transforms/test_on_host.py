"""A function of NumPy that gives an array of known size is called by the graph; what does more than that is not."""

from __future__ import annotations

from typing import Any

import pytest
from judge import mend_text, torch

HEAD = """import math

import numpy as np
import torch

KEPT = []


def spans(shape, rate: float, mask=None, least=0):
    count, length = shape
    if rate > 1:
        raise ValueError("rate")
    sizes = mask.detach().sum(-1).tolist() if mask is not None else [length for _ in range(count)]
    found = np.zeros((count, length), dtype=bool)
    for row, size in enumerate(sizes):
        many = max(int(rate * size + np.random.rand(1).item()), least)
        {}
        found[row, np.random.choice(np.arange(int(size)), many, replace=False)] = True
    return found


@torch.compile
def case(x: torch.Tensor, mask: torch.Tensor, rate: float = 0.5):
    count, length, _ = x.shape
    hidden = torch.tensor(spans((count, length), rate, mask=mask), device=x.device, dtype=torch.bool)
    return torch.where(hidden[:, :, None], 0, x * 2)


def example_inputs():
    return [(torch.randn(2, 6, 3), torch.ones(2, 6))]
"""


def mended(line: str = "pass", replaced: tuple[str, str] = ("", "")) -> str:
    text = HEAD.replace("{}", line)
    return mend_text(text.replace(*replaced) if replaced[0] else text, unsafe=True).source.text


def run(text: str, backend: str) -> Any:
    namespace: dict[str, Any] = {"__name__": "case"}
    exec(compile(text.replace("@torch.compile\n", ""), "case.py", "exec"), namespace)
    torch._dynamo.reset()
    function = namespace["case"]
    return function if backend == "none" else torch.compile(function, backend=backend, fullgraph=True)


@pytest.mark.torch
@pytest.mark.parametrize("backend", ["none", "eager", "aot_eager", "inductor"])
def test_a_graph_draws_what_plain_python_draws(backend: str) -> None:
    import numpy as np

    plain, graph = run(HEAD.replace("{}", "pass"), "none"), run(mended(), backend)
    for count in (2, 3, 5):  # the last two with a size that is not known while tracing
        x, mask = torch.randn(count, 6, 3, requires_grad=True), torch.ones(count, 6)
        answers = []
        for function in (plain, graph):
            np.random.seed(count)
            answers.append((function(x, mask), np.random.rand()))
        (want, after), (got, then) = answers
        assert torch.equal(want, got)
        assert after == then
        assert torch.equal(*(torch.autograd.grad(y.sum(), x)[0] for y in (want, got)))
    with pytest.raises(ValueError, match="rate"):
        graph(x, mask, 2.0)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("line", "replaced"),
    [
        ("KEPT.append(row)", ("", "")),
        ("mask[row] = 0", ("", "")),
        ("print(row)", ("", "")),
        ("mask.numpy().fill(3)", ("", "")),
        ("view = mask.numpy(); view[0] = 1", ("", "")),
        ("np.add(found, 1, out=mask.numpy())", ("", "")),
        ("np.add.at(mask.numpy(), 0, 1)", ("", "")),
        ("many = many + len(KEPT)", ("", "")),
        ("np.save('f', found)", ("", "")),
        ("np.add(mask, 1, mask)", ("", "")),
        ("rows = [mask]; rows[0] += 1", ("", "")),
        ("rows = list(mask); rows[0][:] = 1", ("", "")),
        ("list(map(mask.add_, [1]))", ("", "")),
        ("many = many if mask.grad is None else 0", ("", "")),
        ("many = many if mask is rate else many", ("", "")),
        ("many = many + math.kept", ("", "")),
        ("many = many + next(sizes)", ("", "")),
        ("pass", ("np.zeros((count, length), dtype=bool)", "np.zeros((count, shape[1]), bool, 'F')")),
        ("pass", ("return found", "return found if count else found.T")),
        ("pass", ("np.zeros((count, length), dtype=bool)", "np.zeros(KEPT, dtype=bool)")),
        ("pass", ("spans((count, length), rate, mask=mask)", "spans(tuple(x.shape[:2]), rate, mask=mask)")),
        ("pass", ("spans((count, length), rate, mask=mask)", "spans(*[(count, length), rate, mask])")),
    ],
)
def test_what_does_more_is_called_as_before(line: str, replaced: tuple[str, str]) -> None:
    assert "on_host" not in mended(line, replaced)


@pytest.mark.torch
def test_the_dtype_may_stand_by_its_place() -> None:
    text = mended(replaced=("dtype=bool", "np.float32"))
    assert "on_host((count, length), torch.float32, spans" in text
    assert run(text, "eager")(torch.randn(2, 6, 3), torch.ones(2, 6)).shape == (2, 6, 3)


@pytest.mark.torch
def test_what_is_drawn_and_not_read_is_still_drawn() -> None:
    unused = DRAWN.replace("rate * size + extra", "rate * size")
    text = mend_text(unused).source.text
    assert "def rest(" in text
    assert answers(run(unused, "none")) == answers(run(text, "none"))


@pytest.mark.torch
def test_another_size_raises() -> None:
    text = HEAD.replace("{}", "pass").replace("tensor(spans(", "tensor(on_host((count, 1), torch.bool, spans, ")
    graph = run("from graphmend.runtime import on_host\n" + text, "eager")
    with pytest.raises(RuntimeError, match=r"said to give torch.bool of \(2, 1\)"):
        graph(torch.ones(2, 6, 3), torch.ones(2, 6))


DRAWN = (
    HEAD.replace("{}", "pass")
    .replace("np.random.rand(1).item()", "extra")
    .replace("    sizes =", "    extra = np.random.rand(1).item()\n    sizes =")
)


def answers(function: Any) -> list[Any]:
    import numpy as np

    found: list[Any] = []
    for count in (2, 3, 5):
        torch.manual_seed(count)
        np.random.seed(count)
        x = torch.randn(count, 6, 3)
        found += [function(x, torch.ones(count, 6)).tolist(), np.random.rand(), torch.rand(1).item()]
    return found


@pytest.mark.torch
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_what_torch_draws_stays_in_the_graph(backend: str) -> None:
    """Plain Python draws all from NumPy's generator, and TorchDynamo what it traces from torch's: before and after."""
    text = mend_text(DRAWN).source.text
    assert "    extra = np.random.rand(1)\n" in text
    assert answers(run(DRAWN, "none")) == answers(run(text, "none"))
    plain = run(DRAWN, "none")
    torch._dynamo.reset()
    before = answers(torch.compile(plain, backend=backend))
    assert before == answers(run(text, backend))
    assert before != answers(run(text, "none"))


DRAW, SIZES = "    extra = np.random.rand(1).item()\n", "    sizes ="


@pytest.mark.torch
@pytest.mark.parametrize(
    ("draw", "then"),
    [
        ("    extra = np.random.rand(*shape).sum()\n", ""),
        ("    extra = np.random.rand(1).item() + np.random.rand(1).item()\n", ""),
        ("    np.random.choice(3)\n" + DRAW, ""),
        ("    for _ in range(2):\n        np.random.choice(3)\n" + DRAW, ""),
        ("    lengths = np.ones(count)\n" + DRAW, "    lengths[0] = 2\n"),
        ("    if least:\n        other = 2\n" + DRAW, "    other = other + 1\n"),
        (DRAW, "    count = count + 0\n"),
        (DRAW, "    np.random.randint(0, 2, 1)\n"),
        (DRAW, "    print(extra)\n"),
    ],
)
def test_the_rest_is_left_where_more_would_change(draw: str, then: str) -> None:
    text = DRAWN.replace(DRAW, draw).replace(SIZES, then + SIZES)
    assert "def rest(" in mend_text(DRAWN).source.text
    assert "def rest(" not in mend_text(text, unsafe=True).source.text
