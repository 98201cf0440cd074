"""The models in `examples/`: what reading finds TorchDynamo confirms, and mending leaves only what it refuses."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from graphmend.cli.main import main

pytestmark = pytest.mark.torch

#: what is left of each model after all mends, safe and unsafe
LEFT = {"gated_classifier": [], "token_pruner": [], "guarded_step": []}
#: what the mended form of a check raises where the original's is an AssertionError: its mend says so
RAISES = {"guarded_step": "raises RuntimeError: the loss is not a number where the original raises AssertionError"}


@pytest.fixture(params=LEFT)
def example(request: pytest.FixtureRequest, root: Path, tmp_path: Path) -> Path:
    """A copy of one model's file."""
    return Path(shutil.copy(root / "examples" / f"{request.param}.py", tmp_path))


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """What a command answers as JSON."""
    assert main([*words, "--output-format", "json"]) in (0, 1), capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def test_findings_are_confirmed_and_mended(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--mend", "--unsafe-fixes", "--device", "cpu", "--python", sys.executable)
    (report,) = answer(capsys, "verify", *words, str(example))
    assert report["findings"]
    assert {f["verdict"] for f in report["findings"]} == {"confirmed"}
    assert not [f for f in report["findings"] if f["code"].startswith("GM9")]  # seen by TorchDynamo alone

    (mended,) = report["after"]["targets"]
    expected = RAISES.get(example.stem)
    differences = mended["comparison"]["differences"]
    assert bool(differences) == (expected is not None)
    assert all(expected is not None and expected in difference for difference in differences), differences
    assert main(["check", "--no-cache", "--fix", "--unsafe-fixes", "--exit-zero", str(example)]) == 0
    capsys.readouterr()
    left = answer(capsys, "check", "--no-cache", str(example))
    assert [finding["code"] for finding in left] == LEFT[example.stem]
    assert all(finding["refusal"] for finding in left)
    assert [b["location"]["row"] for b in mended["breaks"]] == [finding["location"]["row"] for finding in left]


def test_each_model_is_in_the_readme(root: Path) -> None:
    text = (root / "examples" / "README.md").read_text("utf-8")
    models = {path.stem for path in (root / "examples").glob("*.py")} - {"demo"}
    assert models == LEFT.keys()
    assert all(f"{name}.py" in text for name in models)
