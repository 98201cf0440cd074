"""Breaks read from torch's own logs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphmend.cli.main import main
from graphmend.dynamo import torch_logs

SOURCE = """\
def f(x):
    for i in range(2):
        if x.sum() > i: x = x + 1
    return helper(x)
def helper(x):
    print("größe"); return x
"""

REPORTS = """\
Graph break in user code at {path}:3
Graph Break Reason: Failed to handle graph break gracefully. Skipping the function and falling back to eager. Graph \
break encountered:

Data-dependent branching
  Explanation: Detected data-dependent branching (e.g. `if my_tensor.sum() > 0:`). Dynamo does not support tracing \
dynamic control flow.

  Hint: Use `torch.cond` to express dynamic control flow.

  Developer debug context: attempted to jump with TensorVariable()

 For more details about this graph break, please visit:
 https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0170.html

*** While handling this graph break, another graph break occurred: ***

graph break in loop
  Explanation: torch.compile detected a graph break in a for/while loop.
  Hint: This graph break may have been caused by an earlier graph break.

User code traceback:
  File "/elsewhere/run.py", line 1, in <module>
    f(x)
  File "{path}", line 3, in f
    if x.sum() > i: x = x + 1
       ^^^^^^^^^^^
Graph break in user code at {path}:6
Graph Break Reason: Encountered graph break when attempting to trace CALL: a function call, e.g. f(x, y):

Failed to trace builtin operator
  Explanation: Dynamo does not know how to trace builtin operator `print`
  Hint: Avoid calling builtin `print`.

 For more details about this graph break, please visit:
 https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0059.html

User code traceback:
  File "{path}", line 4, in f
    return helper(x)
           ^^^^^^^^^
  File "{path}", line 6, in helper
    print("größe"); return x
    ^^^^^^^^^^^^^^
"""

PREFIX = "V1120 17:54:24.262000 1169 torch/_dynamo/symbolic_convert.py:5124] [0/0] [__graph_breaks] "
OTHER = "W1120 17:54:24.262000 1169 torch/_dynamo/variables/tensor.py:1759] [3/0] Graph break from `Tensor.item()`\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(SOURCE, encoding="utf-8")
    return path


def as_log(text: str) -> str:
    return "training\n" + "".join(f"{PREFIX}{line}\n" for line in text.splitlines()) + OTHER + "size: 3\n"


def as_trace(text: str) -> str:
    header = 'V1120 17:54:30.686000 12 torch/_dynamo/symbolic_convert.py:5098] {"artifact": {"name": "x"}}\n'
    return header + "".join(f"\t{line}\n" for line in text.splitlines()) + header


@pytest.mark.parametrize("written", [as_log, as_trace])
def test_both_kinds_of_file(path: Path, written: object) -> None:
    assert callable(written)
    text = written(REPORTS.format(path=path))
    branch, output = torch_logs.parse(text + text, torch_logs.below(str(path.parent)))
    assert (branch.gb_id, branch.gb_type, branch.kind, branch.count) == (
        "GB0170",
        "Data-dependent branching",
        "skip",
        2,
    )
    assert tuple(branch.span) == (3, 11, 3, 22)
    assert branch.hints == ("Use `torch.cond` to express dynamic control flow.",)
    assert [frame.function for frame in branch.stack] == ["f"]
    assert (output.gb_id, output.gb_type, output.kind) == ("GB0059", "Failed to trace builtin operator", "break")
    assert tuple(output.span) == (6, 4, 6, 18)
    assert [frame.function for frame in output.stack] == ["f", "helper"]


def test_a_folder_of_traces(path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`TORCH_TRACE` names a folder, a file for each process; Dynamo's own stack goes on below the user's."""
    inner = '  File "/env/torch/_dynamo/symbolic_convert.py", line 1076, in wrapper\n    return inner_fn(self, inst)\n'
    folder = path.parent / "trace"
    folder.mkdir()
    for number in (1, 2):
        text = as_trace(REPORTS.format(path=path) + inner)
        (folder / f"dedicated_log_torch_trace_{number}.log").write_text(text, encoding="utf-8")
    monkeypatch.chdir(path.parent)
    assert main(["verify", "--from-log", "trace", "--output-format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [(b["gb_id"], b["count"], [f["function"] for f in b["stack"]]) for b in found["breaks"]] == [
        ("GB0170", 2, ["f"]),
        ("GB0059", 2, ["f", "helper"]),
    ]
    assert main(["verify", "--from-log", "trace", "--output-format", "html"]) == 1
    page = capsys.readouterr().out
    assert "model.py:3:12" in page
    assert "://" not in page
    assert main(["verify", "--from-log", "trace", "model.py"]) == 2


def test_the_command(path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(path.parent)
    (path.parent / "log.txt").write_text(as_log(REPORTS.format(path=path)), encoding="utf-8")
    assert main(["verify", "--from-log", "log.txt"]) == 1
    assert "model.py:3:12: GB0170" in capsys.readouterr().out
    (path.parent / "log.txt").write_text("nothing of the kind\n")
    assert main(["verify", "--from-log", "log.txt"]) == 0
    assert main(["verify", "--from-log", "missing.txt"]) == 2
