"""`graphmend verify --batches N`: graphs over a stream of batches with other values, paddings and lengths."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from graphmend.cli.main import main
from graphmend.dynamo.report import TargetReport

pytestmark = pytest.mark.torch

Check = Callable[..., TargetReport]

MASKED = """
class Net(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if mask.all():
            y = x * 2
        else:
            y = x + 1
        return y


def example_inputs():
    return [(torch.randn(4, 6), torch.ones(4, 6, dtype=torch.long))]
"""
EMBEDDED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 3)

    def forward(self, ids):
        return self.embedding(ids)

def example_inputs():
    return [(torch.tensor([[1, 2, 3, 4, 5, 9]]),)]
"""


def test_other_values_and_paddings(check: Check) -> None:
    batches = check(MASKED, batches=4).batches
    assert [batch.executed for batch in batches] == [2, 2, 2, 2], "one up to the branch, one behind it"
    assert [batch.compiled for batch in batches] == [2, 3, 3, 3], "the other side, once"
    assert batches[0].changes == ()
    assert batches[1].changes == ("floats", "integers", "masks")


def test_other_lengths_where_asked_for(check: Check) -> None:
    assert [batch.compiled for batch in check(EMBEDDED, batches=4).batches] == [1, 1, 1, 1]
    batches = check(EMBEDDED, batches=4, lengths=True).batches
    assert [batch.compiled for batch in batches] == [1, 2, 2, 2], "the second length makes a symbolic one"
    assert "lengths" in batches[1].changes


def test_integers_stay_where_the_target_takes_no_others(check: Check) -> None:
    text = """
    def f(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        assert n.tolist() == [[1, 2, 3]]
        return x * 2

    f = torch.compile(f)

    def example_inputs():
        return [(torch.ones(3), torch.tensor([[1, 2, 3]]))]
    """
    batches = check(text, names=("f",), batches=3).batches
    assert [batch.raised for batch in batches] == [None] * 3
    assert all("integers" not in batch.changes for batch in batches)
    assert batches[-1].executed >= 1, "compiled by the program itself"


def verify(*words: str) -> int:
    return main(["verify", "--device", "cpu", "--python", sys.executable, *words])


def test_plain_beside_mended(write: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write(MASKED))
    assert verify(path, "--mend", "--unsafe-fixes", "--batches", "3", "--output-format", "json") == 0
    (report,) = json.loads(capsys.readouterr().out)
    (plain,), (mended,) = report["targets"], report["after"]["targets"]
    assert [batch["executed"] for batch in plain["batches"]] == [2, 2, 2]
    assert [(batch["compiled"], batch["executed"]) for batch in mended["batches"]] == [(1, 1)] * 3
    assert verify(path, "--batches", "3") == 1
    assert "  batches   compiled 2 3 3; executed 2 2 2  [other floats, integers, masks]\n" in capsys.readouterr().out
    assert verify(path, "--batches", "3", "--output-format", "html") == 1
    assert "<tr><th>executed</th><td>2</td><td>2</td><td>2</td></tr>" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--batches", "0"], ["--batches", "x"], ["--lengths"]])
def test_wrong_use(words: list[str], write: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(*words, str(write(MASKED))) == 2
    assert capsys.readouterr().err.count("\n") == 1
