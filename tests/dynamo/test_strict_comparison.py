"""Rewrites made by hand: no wrong one passes, no right one is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from graphmend.dynamo.comparison import Comparison
from graphmend.dynamo.verdict import KINDS, judge

from .conftest import Checks
from .rewrite_pairs import RIGHT, WRONG, Pair

pytestmark = pytest.mark.torch


@pytest.fixture
def compared(checks: Checks, tmp_path: Path) -> Callable[[Pair], Comparison]:
    pytest.importorskip("numpy")

    def compared(pair: Pair) -> Comparison:
        path = tmp_path / "model.py"
        path.write_text(pair.before, encoding="utf-8")
        report = checks(path, mended={str(path): pair.after})
        assert report.after is not None, report.problem
        (target,) = report.after.targets
        assert target.comparison is not None, target.problem
        return target.comparison

    return compared


def test_there_are_enough() -> None:
    assert len(WRONG) >= 25
    assert len(RIGHT) >= 15
    assert all(pair.before != pair.after for pair in (*WRONG, *RIGHT))


@pytest.mark.parametrize("pair", WRONG, ids=lambda pair: pair.name)
def test_a_wrong_one_does_not_pass(compared: Callable[[Pair], Comparison], pair: Pair) -> None:
    found = compared(pair)
    assert not judge(found).passes
    assert pair.kind in {item.kind for item in found.found}, found.found


@pytest.mark.parametrize("pair", RIGHT, ids=lambda pair: pair.name)
def test_a_right_one_passes_and_differs_in_what_it_names(compared: Callable[[Pair], Comparison], pair: Pair) -> None:
    found = compared(pair)
    judged = judge(found, pair.named)
    assert judged.passes, judged.unnamed
    seen = {word for item in judged.named for word in KINDS[item.kind]}
    assert set(pair.named) <= seen, judged.named
    assert bool(judged.named) == bool(pair.named)
