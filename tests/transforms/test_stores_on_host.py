"""A loop that stores to tensors at places which only plain Python can tell is called by the graph; what does more than
that, or what somebody else sees, is not.
"""

from __future__ import annotations

from typing import Any

import pytest
from judge import mend_text, torch

HEAD = """import torch

SPECIAL = [1, 2]
EXPERTS = 4
LOG = []


@torch.compile
def case(ids: torch.LongTensor, x: torch.Tensor):
"""
BLOCKS = """    count, length = ids.shape
    special = torch.zeros((count, length), device=ids.device).bool()
    for token in SPECIAL:
        special |= ids == token
    places = torch.nonzero(special)
    mask = torch.eye(length, device=ids.device).bool().unsqueeze(0).repeat(count, 1, 1)
    positions = torch.zeros((count, length), device=ids.device)
    before = 0
    for i in range(places.shape[0]):
        row, column = places[i]
        if (column == 0) or (column == length - 1):
            mask[row, column, column] = True
        else:
            mask[row, before + 1 : column + 1, before + 1 : column + 1] = True
            positions[row, before + 1 : column + 1] = torch.arange(0, column - before, device=ids.device)
        before = column
    return mask, positions.to(torch.long)
"""
RUNS = """    out = torch.zeros(8, dtype=torch.long, device=ids.device)
    last = -1
    at = 0
    for value in ids.flatten().tolist():
        if value != last:
            out[at] = value
            at += 1
            if at >= 8:
                break
        last = value
    return out
"""
READS_FLOATS = """    mask = torch.zeros(2, 6, dtype=torch.bool, device=x.device)
    for row in range(2):
        end = 0
        while end < 6 and x[row, end] > -1:
            end += 1
        mask[row, :end] = True
    return mask, x * 2
"""
COUNTS = """    # slots of experts
    slots = torch.full((ids.numel(),), -1, dtype=torch.long, device=ids.device)
    used = [0] * EXPERTS  # so far
    for place, token in enumerate(ids.flatten().tolist()):
        if used[token] < EXPERTS // 2:  # room is left
            slots[place] = used[token]
            used[token] += 1
    return slots
"""
MENDED = {"counts": COUNTS, "blocks": BLOCKS, "runs": RUNS, "reads_floats": READS_FLOATS}


def mended(body: str) -> str:
    return mend_text(HEAD + body, unsafe=False).source.text


def function(text: str) -> Any:
    namespace: dict[str, Any] = {"__name__": "case"}
    exec(compile(text.replace("@torch.compile\n", ""), "case.py", "exec"), namespace)
    return namespace["case"]


def inputs() -> list[tuple[Any, Any]]:
    torch.manual_seed(0)
    ids = [torch.randint(0, 4, (2, length)) for length in (6, 6, 9)]
    for each in ids:
        each[:, 0], each[:, -1] = 1, 2
    return [(each, torch.randn(2, 6)) for each in ids]


@pytest.mark.torch
@pytest.mark.parametrize("backend", ["none", "eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("body", MENDED.values(), ids=MENDED)
def test_one_graph_stores_what_plain_python_stores(body: str, backend: str) -> None:
    text = mended(body)
    assert "stores_on_host(" in text
    assert "places = torch.nonzero(special)\n    mask" not in text
    torch._dynamo.reset()
    plain, run = function(HEAD + body), function(text)
    if backend != "none":
        run = torch.compile(run, backend=backend, fullgraph=True)
    for given in inputs():
        expected, got = plain(*given), run(*given)
        for one, other in zip(
            torch.utils._pytree.tree_leaves(expected), torch.utils._pytree.tree_leaves(got), strict=True
        ):
            assert torch.equal(one, other)
            assert (one.dtype, one.stride()) == (other.dtype, other.stride())


MODULE = """import torch
from torch import nn


class Types(nn.Module):
    def __init__(self, first: int = 2, many: int = 2):
        super().__init__()
        self.first, self.many = first, many

    @torch.compile
    def forward(self, ids: torch.LongTensor):
        types = torch.zeros_like(ids)
        for row in range(ids.shape[0]):
            starts = torch.where(ids[row] == self.first)[0]
            for start in starts:  # of images
                types[row, start + 1 : start + 1 + self.many] = 1
        return types
"""


@pytest.mark.torch
def test_numbers_of_objects_are_handed_on() -> None:
    text = mend_text(MODULE, unsafe=False).source.text
    assert "stores_on_host(fill, (types,), ids, self.first, self.many)" in text
    assert "  # of images" in text
    ids = torch.tensor([[2, 0, 0, 2, 1], [1, 2, 3, 0, 0]])
    results = []
    for each in (MODULE, text):
        namespace: dict[str, Any] = {"__name__": "case"}
        exec(compile(each.replace("    @torch.compile\n", ""), "case.py", "exec"), namespace)
        module = namespace["Types"]()
        results.append(module(ids) if each is MODULE else torch.compile(module, fullgraph=True)(ids))
    assert torch.equal(*results)


@pytest.mark.torch
def test_gradients_around_the_call_are_those_of_plain_python() -> None:
    body = READS_FLOATS.replace("return mask, x * 2", "return torch.where(mask, x * 2, x)")
    plain, run = function(HEAD + body), torch.compile(function(mended(body)), fullgraph=True)
    ids, x = inputs()[0]
    one, other = (x.clone().requires_grad_() for _ in range(2))
    plain(ids, one).sum().backward()
    run(ids, other).sum().backward()
    assert torch.equal(one.grad, other.grad)


@pytest.mark.torch
def test_what_the_loop_raises_is_raised() -> None:
    run = torch.compile(function(mended(RUNS.replace("at >= 8", "at >= 9"))), backend="aot_eager")
    with pytest.raises(IndexError, match="out of bounds"):
        run(torch.arange(10).reshape(1, 10), torch.randn(2, 6))


@pytest.mark.parametrize(
    "body",
    [
        RUNS.replace("out[at] = value", "LOG.append(value)\n            out[at] = value"),
        RUNS.replace("out[at] = value", "print(value)\n            out[at] = value"),
        RUNS.replace("return out", "return out, last"),
        RUNS.replace("    last = -1\n", "    seen = out[:4]\n    last = -1\n").replace(
            "return out", "return out, seen"
        ),
        RUNS.replace("out[at] = value", "out[at] = value + int(torch.randint(0, 2, ()))"),
        RUNS.replace("out[at] = value", "out[at] = value + SPECIAL[0]"),
        RUNS.replace("torch.zeros(8, dtype=torch.long, device=ids.device)", "torch.zeros(1).expand(8)"),
        RUNS.replace("            at += 1\n", "            at += 1\n            ids.add_(1)\n"),
        RUNS.replace("out[at] = value", "out[at] = torch.zeros(()).item()"),
        READS_FLOATS.replace("mask[row, :end] = True", "x[row, :end] = 0"),
        READS_FLOATS.replace("torch.zeros(2, 6, dtype=torch.bool", "torch.zeros(2, 6").replace("= True", "= x[row, 0]"),
        BLOCKS.replace("    before = 0\n", "    before = 0\n    special.fill_(False)\n"),
    ],
    ids="list print read_behind view draw module expanded argument default input gradients changed_between".split(),
)
def test_refused(body: str) -> None:
    assert "stores_on_host" not in mended(body) or "torch.nonzero(special)\n    mask" in mended(body)
