"""What is offered is what is made: the outcome that is told, and the end that mends come to in one step or in two."""

from __future__ import annotations

from pathlib import Path

import pytest
from bodies import bodies
from test_judged import case

from graphmend.analysis.check import check
from graphmend.analysis.syntax.source import Source
from graphmend.transforms.fix import Fix
from graphmend.transforms.mend import mend, mend_all, outcome

HERE = Path(__file__).parent
FAMILIES = ("branches", "forms", "guards", "loops", "output", "scalars", "shapes", "refused")
JUDGED = [case(body) for name in FAMILIES for body in bodies((HERE / f"judged/{name}.txt").read_text("utf-8")).values()]
HANDED_OUT = HERE.parents[2] / "shared" / "truth" / "patterns" / "cases"

CHOSEN = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.small = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
        self.large = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor):
        net = self.large if x.sum() > 0 else self.small
        return net(x) + (self.small if x.mean() > 2 else self.large)(x)
"""


def agrees(text: str) -> None:
    source = Source(text, "model.py")
    told = outcome(source)
    safe = mend_all(source, unsafe=False).source
    both = mend_all(source, unsafe=True).source
    assert mend_all(Source(safe.text, "model.py"), unsafe=True).source.text == both.text
    counts = [len(check(Source(one.text, "model.py")).findings) for one in (source, safe, both)]
    assert len(told.safe) + len(told.unsafe) == counts[0] - counts[2]
    # a branch that output splits in two is two findings until an unsafe mend takes them
    assert len(told.safe) >= counts[0] - counts[1]


@pytest.mark.many
def test_of_what_is_judged() -> None:
    for text in JUDGED[::3]:
        agrees(text)


@pytest.mark.many
@pytest.mark.skipif(not HANDED_OUT.is_dir(), reason="the patterns are not here")
def test_of_patterns() -> None:
    for path in sorted(HANDED_OUT.glob("*.py")):
        agrees(path.read_text("utf-8"))


def test_a_mend_that_leaves_the_break_is_none() -> None:
    text = case("    n = x.long().sum().item()\n    return x[:, :n].exp()")
    told = outcome(Source(text, "model.py"))
    assert not told.safe
    assert not told.unsafe
    assert told.left


def test_results_of_modules_are_chosen() -> None:
    mended = mend_all(Source(CHOSEN, "model.py"), unsafe=True)
    assert [a.fix.rewrite for a in mended.applied].count("late_choice") == 2
    assert not mended.left
    assert "net" not in mended.source.text.partition("forward")[2]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("net(x) +", "net(x) * len(list(net.parameters())) +"),
        ("return net", "self.large = torch.nn.Linear(4, 4)\n        return net"),
        ("return net", "self.kept = net\n        return net"),
    ],
    ids=["read", "stored", "kept"],
)
def test_a_module_that_is_more_than_called_stays(old: str, new: str) -> None:
    text = CHOSEN.replace(" if x.mean() > 2 else self.large)(x)", ")(x)").replace(old, new)
    assert "late_choice" not in [a.fix.rewrite for a in mend_all(Source(text, "model.py"), unsafe=True).applied]


GROUPS = """
import itertools
import torch

class Net(torch.nn.Module):
    def count(self, rows):
        found = []
        for row, _ in enumerate(rows):
            kind = rows[row]
            found.append(len([key for key, _ in itertools.groupby(kind.tolist(), lambda each: each > 0)]))
        return torch.tensor(found)

    def forward(self, rows: torch.Tensor):
        return self.count(rows) + rows.sum()
"""


def test_the_name_of_an_argument_is_safe_whatever_is_grouped() -> None:
    mended = mend_all(Source(GROUPS, "groups.py"), unsafe=False)
    assert "groupby(kind.tolist(), key=lambda each: each > 0)" in mended.source.text


IN_TURN = """
import logging
import torch

log = logging.getLogger(__name__)


@torch.compile
def case(x: torch.Tensor):
    h = x * 1
    if x.sum() > 0:
        h.add_(x.exp())
        if h.sum() > 3:
            h.mul_(2)
    else:
        h[0] = 0
        h = h * 3
    return h
"""


def test_what_a_mend_is_there_for_is_told_with_it() -> None:
    told = outcome(Source(IN_TURN, "model.py"))
    assert {title for _, title in told.along} == {"ask the branch again in front of each of its statements"}
    assert all(any(d.kind == "zero-gradients" for d in differences) for differences in told.along.values())


def test_a_line_of_a_log_changes_no_tensor_in_place() -> None:
    head, branch, _ = IN_TURN.partition("    if ")
    text = f"{head}{branch}x.sum() > 0:\n        log.info('a')\n        log.info('b')\n    return h\n"
    (finding, *_) = (result := check(Source(text, "model.py"))).findings
    fixes = [a for a in mend(finding, result.facts(finding)) if isinstance(a, Fix) and a.rewrite == "in_turn"]
    assert fixes
    assert all(d.kind != "gradients" for fix in fixes for d in fix.differences)


def test_a_finding_that_stays_is_told_from_those_alike_that_go() -> None:
    text = case("m = x > 0\nreturn x[m].max(), x[m].sum(), x[m].sort().values")
    source = Source(text, "model.py")
    found = [finding.key for finding in check(source).findings]
    told = outcome(source)
    assert told.unsafe == set(found[:2])
    assert list(told.left) == found[2:]
