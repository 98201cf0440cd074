"""A rewrite is offered with the versions of torch that it was measured with, and refused with others."""

from __future__ import annotations

import pytest

from graphmend.analysis.check import check
from graphmend.analysis.settings import Settings
from graphmend.analysis.syntax.source import Source
from graphmend.analysis.torch_facts import versions
from graphmend.transforms import torch_versions
from graphmend.transforms.document import documented
from graphmend.transforms.mend import mend_all
from graphmend.transforms.torch_versions import held, measured, minor, stated, unmeasured

ROWS = {
    (2, 8): {"young": (0, 4), "old": (2, 2)},
    (2, 10): {"young": (4, 4), "old": (2, 2), "gone": (1, 1), "between": (1, 1)},
    (2, 12): {"young": (4, 4), "old": (2, 2), "gone": (1, 2), "between": (0, 1)},
    (2, 13): {"young": (4, 4), "old": (2, 2), "gone": (0, 2), "between": (1, 1), "wrong": (1, 2)},
}


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_versions, "measured", lambda: ROWS)
    monkeypatch.setattr(torch_versions, "WHY", {"young": "it needs more"})


@pytest.mark.usefixtures("rows")
def test_what_is_said() -> None:
    assert stated("old") == "measured from torch 2.8 on"
    assert stated("young") == "measured from torch 2.10 on"
    assert stated("gone") == "measured with torch 2.10"
    assert stated("between") == "measured with torch 2.10 and 2.13"
    assert stated("new") == "measured from torch 2.13 on"
    assert stated("wrong") == "measured with no torch"


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize(
    ("rewrite", "version", "refusal"),
    [
        ("old", "2.8.0+cpu", None),
        ("young", "2.10.0+rocm6.3", None),
        ("young", "2.14.0.dev20301101", None),
        ("young", "main", None),
        ("young", "2.8.0", "measured from torch 2.10 on: it needs more; this is checked against 2.8"),
        ("gone", "2.13", "measured with torch 2.10; this is checked against 2.13"),
        ("gone", "2.14", "measured with torch 2.10; this is checked against 2.14"),
        ("old", "2.9", "measured from torch 2.8 on; this is checked against 2.9"),
        ("new", "2.13", None),
        ("new", "2.12", "measured from torch 2.13 on; this is checked against 2.12"),
        ("wrong", "2.13", "measured with no torch; this is checked against 2.13"),
    ],
)
def test_where_it_is_refused(rewrite: str, version: str, refusal: str | None) -> None:
    assert unmeasured(rewrite, version) == refusal


def test_every_rewrite_holds_with_the_newest_torch() -> None:
    assert tuple(map(minor, (versions()[0], versions()[-1]))) == (torch_versions.OLDEST, torch_versions.NEWEST)
    assert {name for name in documented() if torch_versions.NEWEST not in held(name)} == set()


def test_what_is_measured_is_a_supported_version() -> None:
    assert set(map(torch_versions.text, measured())) <= set(versions())


QUANTILE = """
import torch

@torch.compile
def case(x: torch.Tensor):
    y = x.float()
    return torch.quantile(y[y.abs() > 0], 0.3)
"""


@pytest.mark.parametrize(("version", "left"), [("2.10", ["GM604"]), ("2.13", [])])
def test_a_break_at_a_call_of_the_program_is_still_told_where_a_mend_writes_its_kind(
    version: str, left: list[str]
) -> None:
    """Torch 2.10 breaks at each kind of quantile: the one that a mask is reduced by is no exception."""
    settings = Settings(torch_version=version)
    mended = mend_all(Source(QUANTILE, "model.py"), settings=settings, unsafe=True).source
    assert ".nanquantile(0.3)" in mended.text
    assert [finding.code for finding in check(mended, settings=settings).findings] == left
