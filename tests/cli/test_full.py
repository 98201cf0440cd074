"""The format that people read: short, and as wide as the terminal."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

Run = Callable[..., Any]

#: a training project of a few files, as people write them
LAB = Path(__file__).with_name("lab")
FINDING = re.compile(r"(?=^GM\d{3} )", re.MULTILINE)


@pytest.fixture
def lab(folder: Path) -> Path:
    """A copy of the training project, in the current folder."""
    return Path(shutil.copytree(LAB, folder, dirs_exist_ok=True))


@pytest.mark.usefixtures("fake")
def test_a_finding_is_its_message_its_line_and_what_to_do(run: Run, folder: Path) -> None:
    (folder / "m.py").write_text("def f(x):\n\ty = '漢', BREAK\n")
    assert run("check").out.splitlines() == [
        "GM101 tensor-branch: BREAK breaks the graph",
        " --> m.py:2:11  in f (compiled)",
        "2 |     y = '漢', BREAK",
        "  |               ^^^^^",
        "  = mend (unsafe): use torch.where",
        "",
        "Found 1 finding in 1 file, 1 file checked. 1 can be mended with --fix --unsafe-fixes.",
    ]


@pytest.mark.usefixtures("fake")
def test_all_that_is_known_is_shown_on_request(run: Run, folder: Path) -> None:
    (folder / "m.py").write_text("def f(x):\n\ty = '漢', BREAK\n")
    out = run("check", "--verbose").out
    assert "2 |     y = '漢', BREAK\n  |               ^^^^^\n" in out
    assert "because: x is a parameter of f" in out
    assert "  = mend (unsafe): use torch.where\n                   both sides run\n" in out


@pytest.mark.usefixtures("lab")
def test_what_a_mend_differs_in_is_never_cut(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    told = re.findall(r"^ += mend \(unsafe\): (.*)$", run("check", ".").out, re.MULTILINE)
    firsts = [
        each["fixes"][0] for each in json.loads(run("check", "--output-format", "json", ".").out) if each["fixes"]
    ]
    kinds = [fix["differences"] for fix in firsts if fix["applicability"] == "unsafe"]
    assert any("...; differs in " in line for line in told)
    assert all(len(line) < 80 and not re.search(r"differs[^;]*[.]{3}$", line) for line in told)
    assert [line.partition("; differs in ")[2].partition(", ")[0].partition(" and ")[0] for line in told] == [
        each[0] if each else "" for each in kinds
    ]


@pytest.mark.usefixtures("lab")
def test_a_project_of_many_findings_fits_on_few_pages(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    out = run("check", ".").out
    count = len(re.findall(r"^GM\d{3} ", out, re.MULTILINE))
    assert count >= 26
    assert out.count("\n") <= 170 * count / 26
    last = out.splitlines()[-3:]
    assert re.match(r"rules: GM\d{3} \d+, ", last[0])
    assert re.match(r"files: models/\w+\.py \d+, ", last[1])
    listed = [int(number) for number in re.findall(r" (\d+)(?:,|$)", last[1])]
    assert sum(listed) == count


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_no_finding_has_more_than_six_lines_at_any_width(
    run: Run, lab: Path, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    _, *findings = FINDING.split(run("check", ".").out.rpartition("\nrules: ")[0])
    for text in findings:
        lines = text.rstrip().splitlines()
        assert len(lines) <= 6, text
        assert max(map(cell_len, lines)) <= width, text
        (place,) = re.findall(r"^ *--> (\S+?):(\d+):(\d+)(?: |$)", text, re.MULTILINE)
        (carets,) = re.findall(r"^ *\| *(\^+)", text, re.MULTILINE)
        (begin,) = (line.index("^") for line in lines if re.match(r" *\| *\^", line))
        source = next(line for line in lines if re.match(r"\d+ \|", line))
        row, column = int(place[1]), int(place[2])
        whole = (lab / place[0]).read_text().splitlines()[row - 1]
        shown = source[begin : begin + len(carets)].removesuffix("...")
        assert shown
        assert whole[column - 1 :].startswith(shown), text


def test_verbose_is_as_wide_as_the_terminal(run: Run, lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    lines = run("check", "-v", ".").out.splitlines()
    remarks = [line for line in lines if re.match(r" +(?![-|^ ])", line) and "^^" not in line]
    assert len(remarks) > 200
    assert [line for line in remarks if len(line) > 72 and " " in line.strip()] == []


@pytest.mark.many
@pytest.mark.parametrize("options", [["--fix"], ["--fix", "--unsafe-fixes"]])
def test_the_report_after_mending_is_that_of_a_fresh_check(run: Run, lab: Path, options: list[str]) -> None:
    after = run("check", "--output-format", "json", *options, ".").out
    assert json.loads(after)
    assert json.loads(after) == json.loads(run("check", "--no-cache", "--output-format", "json", ".").out)
    assert all(Path(item["filename"]).is_relative_to(lab) for item in json.loads(after))


@pytest.mark.many
def test_mending_in_two_steps_ends_where_one_does(run: Run, lab: Path) -> None:
    run("check", "--fix", ".")
    run("check", "--fix", "--unsafe-fixes", ".")
    steps = {path.name: path.read_text() for path in lab.rglob("*.py")}
    shutil.copytree(LAB, lab, dirs_exist_ok=True)
    run("check", "--fix", "--unsafe-fixes", ".")
    assert {path.name: path.read_text() for path in lab.rglob("*.py")} == steps


def test_after_fix_nothing_is_said_to_be_left_for_fix(run: Run, folder: Path) -> None:
    """A safe mend that would stand in the way of a better, unsafe one is left; another --fix would leave it, too."""
    text = """\
import logging
import torch
logger = logging.getLogger(__name__)
@torch.compile
def f(x):
    print(x)
    if (x < 0).any():
        logger.warning("negative %s", x.min().item())
    return x
"""
    (folder / "model.py").write_text(text)
    for expected in ("Made 2 mends for 3 findings. ", ""):
        last = run("check", "--fix", "model.py").out.splitlines()[-1]
        assert last.startswith(f"{expected}Found "), last
        assert "can be mended with --fix --unsafe-fixes" in last
        assert "can be mended with --fix," not in last


def test_advice_on_a_drawn_number_fits_it(run: Run, folder: Path) -> None:
    (folder / "m.py").write_text(
        "import torch\n\n\n@torch.compile\ndef f(x: torch.Tensor, p: float):\n    if torch.rand(()) < p:\n"
        "        return x\n    return x.nonzero() if x.sum() > 0 else x\n"
    )
    advice = [found["advice"] for found in json.loads(run("check", "--output-format", "json").out)]
    assert "pass it in" in advice[0]
    assert "pass it in" not in advice[1]


def test_what_fix_makes_although_a_break_may_stay_is_said_before(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Layer drop: its break goes where the rate is 0, and is told as before where nobody knows the rate."""
    monkeypatch.delenv("COLUMNS", raising=False)
    (folder / "m.py").write_text(
        "import torch\nfrom torch import nn\n\n\nclass Encoder(nn.Module):\n    def __init__(self, layers, rate):\n"
        "        super().__init__()\n        self.layers, self.rate = nn.ModuleList(layers), rate\n\n"
        "    def forward(self, x: torch.Tensor):\n        for layer in self.layers:\n"
        "            if torch.rand(()) < self.rate:\n                continue\n            x = layer(x)\n"
        "        return x\n"
    )
    out = run("check").out
    assert (
        "= mend (safe): ask first whether what is drawn can fall into the range; where it can, the break stays" in out
    )
    assert out.splitlines()[-1].endswith("1 can be narrowed with --fix.")
    assert "1 can be mended with --fix," not in out
    assert "[*]" not in run("check", "--output-format", "concise", "--show-fixes").out
    last = run("check", "--fix").out.splitlines()[-1]
    assert last.startswith("Made 1 mend. Found 1 finding in 1 file")
    assert "narrowed" not in last
    assert "Made" not in run("check", "--fix").out


def test_the_mends_that_were_made_are_told_with_the_findings_that_they_removed(run: Run, folder: Path) -> None:
    (folder / "m.py").write_text(
        "import torch\n\n\n@torch.compile\ndef f(x: torch.Tensor):\n"
        "    print(x.sum().item(), x.max().item())\n    return x\n"
    )
    told = int(re.findall(r"(\d+) can be mended with --fix\.", run("check").out)[0])
    assert told > 1
    assert run("check", "--fix").out.startswith(f"Made 1 mend for {told} findings. No graph breaks found")


def test_asking_for_gradients_is_no_matter_of_sizes(run: Run, lab: Path) -> None:
    found = json.loads(run("check", "--output-format", "json", "trainer.py").out)
    (asks,) = (each for each in found if "autograd.grad" in each["message"])
    assert (asks["code"], asks["advice"]) == ("GM601", "Do it outside of the compiled function.")


def test_a_diff_says_how_many_findings_its_mends_are_for(run: Run, folder: Path) -> None:
    body = "    if x.sum() > 0:\n        print('above')\n    return x\n"
    (folder / "m.py").write_text(f"import torch\n\n\n@torch.compile\ndef f(x: torch.Tensor):\n{body}")
    assert run("check", "--fix", "--diff").err == "graphmend: would make 1 mend for 2 findings\n"


def test_what_differs_is_not_called_nothing(run: Run, folder: Path) -> None:
    body = "    if torch.isnan(x).any():\n        print('lost')\n    return x\n"
    (folder / "m.py").write_text(f"import torch\n\n\n@torch.compile\ndef f(x, y=None):\n{body}")
    mends = [fix for each in json.loads(run("check", "--output-format", "json").out) for fix in each["fixes"]]
    assert any(each["differences"] for each in mends)
    assert not any("nothing lost" in each["message"] for each in mends if each["differences"])
