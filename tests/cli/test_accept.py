"""`accept`: mends that differ only in ways that a user accepts are safe for that user, and say so all the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphmend.transforms.fix import DIFFERENCES
from graphmend.workspace import options

Run = Callable[..., Any]

#: the sum differs in rounding, the copy in rounding and in more
ROUNDS = "import torch\n\n\n@torch.compile\ndef total(x: torch.Tensor):\n    return x[x > 0].sum()\n"
COPIES = "import torch\n\n\n@torch.compile\ndef best(x: torch.Tensor):\n    return x[x.argmax()]\n"
PRINTS = "import torch\n\n\n@torch.compile\ndef shown(x: torch.Tensor):\n    print(x)\n    return x\n"


def fixes(out: str) -> list[tuple[str, list[str]]]:
    return [(fix["applicability"], fix["differences"]) for item in json.loads(out) for fix in item["fixes"][:1]]


def test_the_kinds_are_those_of_the_rewrites() -> None:
    assert tuple(DIFFERENCES) == options.DIFFERENCES


def test_accepted_differences_are_safe_and_shown(run: Run, folder: Path) -> None:
    (folder / "m.py").write_text(ROUNDS)
    assert fixes(run("check", "--output-format", "json").out) == [("unsafe", ["rounding"])]
    assert fixes(run("check", "--output-format", "json", "--accept", "rounding").out) == [("safe", ["rounding"])]
    assert (
        "mend (safe): reduce all elements under the mask; differs in rounding"
        in run("check", "--accept", "rounding").out
    )
    assert run("check", "--fix").status == 1
    assert (folder / "m.py").read_text() == ROUNDS
    assert run("check", "--fix", "--accept", "strides").status == 1
    assert run("check", "--fix", "--accept", "strides,rounding").status == 0
    assert "torch.where(x > 0, x, 0).sum()" in (folder / "m.py").read_text()


@pytest.mark.parametrize("name", ["pyproject.toml", "graphmend.toml"])
def test_a_project_accepts_for_its_files_alone(run: Run, folder: Path, name: str) -> None:
    for part in ("one", "other"):
        (folder / part).mkdir()
        (folder / part / "m.py").write_text(ROUNDS)
    table = "[tool.graphmend]\n" if name == "pyproject.toml" else ""
    (folder / "one" / name).write_text(f'{table}accept = ["rounding"]\n')
    run("check", "--fix", "--no-cache")
    assert (folder / "one" / "m.py").read_text() != ROUNDS
    assert (folder / "other" / "m.py").read_text() == ROUNDS


def test_every_difference_has_to_be_accepted(run: Run, folder: Path) -> None:
    (folder / "m.py").write_text(COPIES)
    ((applicability, kinds),) = fixes(run("check", "--output-format", "json").out)
    assert (applicability, len(kinds) > 1) == ("unsafe", True)
    some, every = ",".join(kinds[1:]), ",".join(kinds)
    assert fixes(run("check", "--output-format", "json", "--accept", some).out) == [("unsafe", kinds)]
    assert fixes(run("check", "--output-format", "json", "--accept", every).out) == [("safe", kinds)]


def test_silenced_output_is_never_accepted(run: Run, folder: Path) -> None:
    (folder / "m.py").write_text(PRINTS)
    (item,) = json.loads(run("check", "--output-format", "json", "--accept", ",".join(DIFFERENCES)).out)
    silencing = [fix for fix in item["fixes"] if "silences" in fix["message"]]
    assert [(fix["applicability"], fix["differences"]) for fix in silencing] == [("unsafe", ["output"])]


def test_unknown_kinds_are_refused_with_those_that_exist(run: Run, folder: Path) -> None:
    (folder / "m.py").write_text(ROUNDS)
    for words in (["check", "--accept", "roundin"], ["verify", "--accept", "roundin", "m.py"]):
        outcome = run(*words)
        assert outcome.status == 2
        assert "command line: `accept` must be kinds of differences (rounding, overflow, nan, dtype, " in outcome.err
        assert "internal error" not in outcome.err
        assert 'not "roundin"; did you mean `rounding`?' in outcome.err
    (folder / "graphmend.toml").write_text('accept = "rounding"\n')
    outcome = run("check")
    assert outcome.status == 2
    assert "graphmend.toml: `accept` must be a list of strings" in outcome.err
