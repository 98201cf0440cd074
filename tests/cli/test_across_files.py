"""Findings that stand in another file than the code that is compiled, with the real analysis."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphmend.cli.verifying.static_findings import Static
from graphmend.dynamo.report import Report
from graphmend.workspace.config import Configurations

Run = Callable[..., Any]

HELPER = """\
import torch


def helper(x):
    print("x", x.sum())
    return x + 1
"""
MODEL = """\
import torch

from helper import helper


@torch.compile
def f(x):
    return helper(x)
"""


@pytest.fixture
def project(folder: Path) -> Path:
    (folder / "helper.py").write_text(HELPER)
    (folder / "model.py").write_text(MODEL)
    return folder


def found(run: Run, *arguments: str) -> list[tuple[str, str, int]]:
    items = json.loads(run("check", "--output-format", "json", *arguments).out)
    return [(Path(item["filename"]).name, item["code"], item["location"]["row"]) for item in items]


def test_finding_is_reported_where_it_breaks(run: Run, project: Path) -> None:
    assert found(run) == [("helper.py", "GM201", 5)]
    assert found(run) == [("helper.py", "GM201", 5)], "the same from the cache"
    assert found(run, "model.py") == []


def test_who_checks_the_caller_alone_is_told_where_to_look(run: Run, project: Path) -> None:
    outcome = run("check", "model.py")
    assert (outcome.status, outcome.out) == (0, "No graph breaks found, 1 file checked.\n")
    hint = "1 finding in helper.py, in code that model.py compiles: graphmend check helper.py shows it\n"
    assert outcome.err == f"graphmend: {hint}"
    for options in ((".",), ("model.py", "--quiet"), ("model.py", "--ignore", "GM2"), ("--output-format", "json")):
        assert "helper.py, in" not in run("check", *options).err
    (project / "helper.py").write_text(HELPER.replace("sum())", "sum())  # graphmend: ignore[GM201] wanted"))
    assert run("check", "model.py").err == ""


def test_comment_there_takes_it_back_and_is_needed(run: Run, project: Path) -> None:
    line = '    print("x", x.sum())'
    (project / "helper.py").write_text(HELPER.replace(line, f"{line}  # graphmend: ignore[GM201]"))
    assert found(run) == []


def test_baseline_knows_it(run: Run, project: Path) -> None:
    run("check", "--write-baseline", "known.json")
    assert found(run, "--baseline", "known.json") == []
    (project / "helper.py").write_text(HELPER.replace("    return", '    print("y")\n    return'))
    assert found(run, "--baseline", "known.json", "--no-cache") == [("helper.py", "GM201", 6)]


def test_callers_that_reach_like_findings_in_part(run: Run, project: Path) -> None:
    """Each check numbers the like findings that it reaches; together they are two."""
    twice = HELPER.replace("def helper(x):\n", "def helper(x, quiet=False):\n    if not quiet:\n        print(1)\n")
    (project / "helper.py").write_text(twice.replace('"x", x.sum()', "1"))
    (project / "other.py").write_text(MODEL.replace("helper(x)", "helper(x, True)"))
    both = [("helper.py", "GM201", 6), ("helper.py", "GM201", 7)]
    assert found(run) == both
    run("check", "--write-baseline", "known.json", "other.py", "helper.py")
    assert found(run, "--baseline", "known.json") == []


def test_two_callers_make_one_finding(run: Run, project: Path) -> None:
    (project / "other.py").write_text(MODEL)
    assert found(run) == [("helper.py", "GM201", 5)]


def test_change_of_a_helper_reaches_its_callers(run: Run, project: Path) -> None:
    from graphmend.workspace import cache

    assert len(found(run)) == 1
    (project / "helper.py").write_text(HELPER.replace("print", "max"))
    cache.folder_stamp.cache_clear()  # as in the next process
    assert found(run) == []


def test_finding_in_another_file_has_its_mends(run: Run, project: Path) -> None:
    (item,) = json.loads(run("check", "--output-format", "json").out)
    assert item["filename"] == str(project / "helper.py")
    assert item["fixes"], item["refusal"]


def test_fix_mends_it_where_it_stands(run: Run, project: Path) -> None:
    before = (project / "model.py").read_text()
    outcome = run("check", "--fix")
    assert (outcome.status, outcome.err) == (0, "")
    mended = (project / "helper.py").read_text()
    assert "from graphmend.runtime import " in mended
    assert 'emit(print, "x", x.sum())' in mended
    assert (project / "model.py").read_text() == before


def test_diff_shows_it_and_writes_nothing(run: Run, project: Path) -> None:
    outcome = run("check", "--diff")
    assert '-    print("x", x.sum())' in outcome.out
    assert (project / "helper.py").read_text() == HELPER


def test_file_that_is_not_named_is_left_alone(run: Run, project: Path) -> None:
    run("check", "--fix", "model.py")
    assert (project / "helper.py").read_text() == HELPER


def test_comment_keeps_it_from_being_mended(run: Run, project: Path) -> None:
    text = HELPER.replace("x.sum())", "x.sum())  # graphmend: ignore[GM201]")
    (project / "helper.py").write_text(text)
    run("check", "--fix")
    assert (project / "helper.py").read_text() == text


def test_callers_that_were_not_named_count(run: Run, project: Path) -> None:
    assert found(run, "helper.py") == [("helper.py", "GM201", 5)]
    assert run("check", "--fix", "helper.py").status == 0
    assert "emit(print" in (project / "helper.py").read_text()


def test_too_many_callers_are_left_out_with_a_remark(run: Run, project: Path) -> None:
    from graphmend.workspace.importers import MANY

    for number in range(MANY):
        (project / f"model{number}.py").write_text(MODEL)
    outcome = run("check", "helper.py")
    assert outcome.status == 0
    assert f"{MANY + 1} files that import the checked ones were not looked at" in outcome.err


@pytest.mark.parametrize(
    ("file", "statement"),
    [
        ("pkg/a.py", "from .helper import helper"),
        ("pkg/b.py", "from . import (\n    other,\n    helper,\n)"),
        ("pkg/sub/c.py", "from ..helper import *"),
        ("pkg/d.py", "import pkg.helper as h"),
        ("pkg/e.py", "def f():\n    from pkg import helper"),
        ("pkg/f.py", 'import importlib\nhelper = importlib.import_module("pkg.helper")'),
    ],
)
def test_importers(folder: Path, file: str, statement: str) -> None:
    from graphmend.workspace.importers import importers

    for name in ("pkg/__init__.py", "pkg/sub/__init__.py", "pkg/helper.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    (folder / "pkg/stranger.py").write_text("import torch, helper\nfrom .helpers import helper\n")
    (folder / file).write_text(f"import torch\n{statement}\n")
    assert importers([folder / "pkg/helper.py"]) == [folder / file]


def test_a_long_line_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read of the text, in characters: a line of many statements must not be read again for each of them."""
    from graphmend.workspace import importers

    read = 0

    class Counted:
        def __init__(self, pattern: re.Pattern[bytes], method: str) -> None:
            self.pattern, self.method = pattern, method

        def __call__(self, data: bytes, begin: int, *end: int) -> re.Match[bytes] | None:
            nonlocal read
            found: re.Match[bytes] | None = getattr(self.pattern, self.method)(data, begin, *end)
            read += found.end() - begin if found is not None else (end[0] - begin if end else 0)
            return found

        fullmatch = match = property(lambda self: self)

    class Text(bytes):
        def rfind(self, part: Any, begin: Any = None, end: Any = None, /) -> int:
            nonlocal read
            found = super().rfind(part, begin, end)
            read += end - max(found, begin)
            return found

    monkeypatch.setattr(importers, "_HEAD", Counted(importers._HEAD, "fullmatch"))
    monkeypatch.setattr(importers, "_TAIL", Counted(importers._TAIL, "match"))
    text = b"import a; " * 30_000
    found = list(importers._statements(Text(b"import torch\n" + text + b"\nfrom b import c\n")))
    assert [(of, names[:9]) for of, names in found] == [(None, b"torch"), (None, b"a; import"), (b"b", b"c")]
    assert len(text) < read < 3 * len(text)


BRANCHING = """\
import torch


def helper(x, other):
    if x.sum() > 0:
        return x * 2
    return other
"""


def mended(run: Run, project: Path, *calls: str) -> str:
    """The helper's text after `--fix --unsafe-fixes`, where a file each makes the calls."""
    (project / "helper.py").write_text(BRANCHING)
    for number, call in enumerate(calls):
        (project / f"model{number}.py").write_text(MODEL.replace("helper(x)", call))
    run("check", "--fix", "--unsafe-fixes")
    return (project / "helper.py").read_text()


def test_mend_is_right_for_every_caller(run: Run, project: Path) -> None:
    (project / "model.py").unlink()
    assert "if x.sum() > 0:" not in mended(run, project, "helper(x, x - 1)")
    assert mended(run, project, "helper(x, x - 1)", "helper(x, None)") == BRANCHING
    assert mended(run, project, "helper(x, None)", "helper(x, x - 1)") == BRANCHING


KEPT = """\
import torch


def helper(x):
    print("sum", x.sum())
    s = x.sum().item()
    if s > 1:
        x = x * 2
    return x
"""


def test_safe_mends_and_then_the_rest_end_where_both_do(run: Run, project: Path) -> None:
    def ending(*steps: tuple[str, ...]) -> str:
        (project / "helper.py").write_text(KEPT)
        for step in steps:
            run("check", "--fix", *step)
        return (project / "helper.py").read_text()

    at_once = ending(("--unsafe-fixes",))
    assert at_once != KEPT
    assert ending((), ("--unsafe-fixes",)) == at_once
    assert found(run) == []


LOSS = """\
import torch
from torch import nn


class Loss(nn.Module):
    def forward(self, out):
        total = out["logits"].new_zeros(())
        for part in out["logits"]:
            total = total + part.sum()
        if total > 1:
            print("large", float(total))
        return total
"""


def test_a_file_that_a_caller_knows_more_of_is_mended_as_it_is_alone(run: Run, folder: Path) -> None:
    """`helper.py` is mended together with its caller, in whose eyes more mends of `loss.py` would be safe."""
    (folder / "loss.py").write_text(LOSS)
    run("check", "--fix", "loss.py")
    alone = (folder / "loss.py").read_text()
    caller = MODEL.replace(
        "    return helper(x)", '    from loss import Loss\n\n    return Loss()({"logits": helper(x)})'
    )
    for name, text in (
        ("helper.py", HELPER),
        ("loss.py", LOSS),
        ("model.py", caller.replace("(x)", "(x: torch.Tensor)", 1)),
    ):
        (folder / name).write_text(text)
    done = run("check", "--fix")
    assert done.status == 1, done.err
    assert "emit(print" in (folder / "helper.py").read_text()
    assert (folder / "loss.py").read_text() == alone
    assert "internal error" not in done.out + done.err


def test_a_mend_that_goes_with_another_one_is_shown_where_two_files_find_the_break(run: Run, folder: Path) -> None:
    """The branch goes once the line in it is mended: `check` says so, as `--fix` does it."""
    (folder / "model.py").write_text(
        "import logging\nimport torch\nfrom torch import nn\n\nlog = logging.getLogger(__name__)\n\n\n"
        "class Net(nn.Module):\n    def forward(self, x):\n        x = torch.flatten(x)\n"
        "        if torch.isnan(x).any():\n            log.warning('nan')\n            x = torch.nan_to_num(x)\n"
        "        return x\n"
    )
    (folder / "train.py").write_text("import torch\nfrom model import Net\n\nnet = torch.compile(Net())\n")
    out = run("check", ".").out
    assert "1 can be mended with --fix, 1 more with --fix --unsafe-fixes" in out
    assert "advice" not in out
    assert "Made 2 mends. Found 1 finding" in run("check", "--fix", ".").out
    assert "No graph breaks found" in run("check", "--fix", "--unsafe-fixes", ".").out


@pytest.mark.parametrize(("settings", "codes"), [("", ["GM201"]), ('ignore = ["GM2"]\n', [])])
def test_verify_checks_each_caller_with_its_own_settings(folder: Path, settings: str, codes: list[str]) -> None:
    """`verify` names the checked file alone; what its callers find there depends on what holds for them."""
    package = folder / "package"
    for each, text in (("helper", HELPER), ("train/model", MODEL.replace("from helper", "from ..helper"))):
        path = package / f"{each}.py"
        path.parent.mkdir(exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(text)
    (package / "graphmend.toml").write_text('assume-compiled = "never"\n')
    (package / "train" / "graphmend.toml").write_text(settings)
    judged = Static(package / "helper.py", Configurations(), None).judged(Report(str(package / "helper.py")))
    assert [each.finding.code for each in judged] == codes


LIMITED = """\
import torch
from torch import nn


def _report(h, limit):
    if limit > 10:
        print("large", limit)
    return h * 2


class Net(nn.Module):
    def forward(self, x, limit):
        return _report(x + 1, limit)
"""


@pytest.mark.parametrize("options", [[], ["--unsafe-fixes"]])
def test_verify_mends_what_check_does(run: Run, folder: Path, options: list[str]) -> None:
    """Only the caller shows that `limit` is a tensor, and so that the branch breaks, too."""
    (folder / "net.py").write_text(LIMITED)
    (folder / "train.py").write_text(
        "import torch\nfrom net import Net\n\nx = torch.ones(2)\ntorch.compile(Net())(x, x.max())\n"
    )
    run("check", "--fix", *options, ".")
    for_check = (folder / "net.py").read_text()
    (folder / "net.py").write_text(LIMITED)
    for_verify = Static(folder / "net.py", Configurations(), None, ("Net",)).mended(bool(options)).text
    statements = [
        text[text.index("def _report") :].replace("graphmend.runtime.", "") for text in (for_check, for_verify)
    ]
    assert statements[0] == statements[1] != LIMITED
    assert ("emit_if(" in for_verify) is bool(options)


def test_a_break_that_safe_mends_only_move_names_the_mend_that_removes_it(run: Run, folder: Path) -> None:
    (folder / "model.py").write_text(
        "import torch\n\n\n@torch.compile\ndef normalise(x: torch.Tensor):\n    if x.std() < 1:\n"
        "        print('flat', x.mean())\n        return x - x.mean()\n    return x / x.std()\n"
    )
    branch, line = json.loads(run("check", "--output-format", "json", "model.py").out)
    assert (branch["code"], branch["fixes"][0]["applicability"]) == ("GM101", "unsafe")
    assert "emit" not in branch["fixes"][0]["message"]
    assert branch["fixes"][0]["differences"], "an unsafe mend says in what it differs"
    assert (line["code"], line["fixes"][0]["applicability"]) == ("GM201", "safe")


OWN = """\
import torch


def helper(x, flag):
    if flag:
        return x * 2
    return x + 1


@torch.compile
def f(x: torch.Tensor):
    return helper(x, x.sum() > 0)
"""
PLAIN = """\
import torch

from own import helper

print(helper(torch.ones(1), False))
"""


def test_others_may_call_a_public_function_with_what_is_no_tensor(run: Run, folder: Path) -> None:
    (folder / "own.py").write_text(OWN)
    (folder / "plain.py").write_text(PLAIN)
    run("check", "--fix", ".")
    mended = (folder / "own.py").read_text()
    assert "    if flag:\n        return x * 2\n" in mended, "it would raise for False"
    run("check", "--fix", "--unsafe-fixes", ".")
    assert "torch.where(flag, x * 2, x + 1)" in (folder / "own.py").read_text()


REACHABLE = {
    "dunder": """
class Gate:
    def __call__(self, x, on):
        if on:
            return x + 1
        return x * 2


gate = Gate()
""",
    "private_method": """
class Base:
    def _pick(self, x, on):
        if on:
            return x + 1
        return x * 2


def gate(x, on):
    return Base()._pick(x, on)
""",
    "handed_out": """
def _make():
    def gate(x, on):
        if on:
            return x + 1
        return x * 2

    return gate


gate = _make()
""",
}
CALLS = """

@torch.compile
def f(x: torch.Tensor):
    return gate(x, x.sum() > 0)
"""


@pytest.mark.parametrize("name", REACHABLE)
def test_what_others_can_get_at_may_be_called_by_them(run: Run, folder: Path, name: str) -> None:
    text = f"import torch\n{REACHABLE[name]}{CALLS}"
    (folder / "own.py").write_text(text)
    run("check", "--fix", ".")
    assert (folder / "own.py").read_text() == text


ARRAYS = """import torch


def halved(x):
    return x / 2 if x.sum() > 0 else x / 4


def widened(x):
    return x.unsqueeze(0) / 2 if x.sum() > 0 else x.unsqueeze(0) / 4


@torch.compile
def f(x: torch.Tensor):
    return halved(x), widened(x)
"""


def test_others_may_pass_an_array_where_one_can_be_used_as_a_tensor(run: Run, folder: Path) -> None:
    (folder / "own.py").write_text(ARRAYS)
    run("check", "--fix", ".")
    text = (folder / "own.py").read_text()
    assert "x / 2 if x.sum() > 0 else x / 4" in text
    assert "x.unsqueeze(0) / 2 if" not in text
