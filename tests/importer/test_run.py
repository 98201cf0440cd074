"""`graphmend run` behaves as `python` does, mends what it is told to, and says so once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from whole_programs import Run

from graphmend.importer.text_mender import CAPTURES_FROM, CAPTURES_FROM_PYTHON

MODEL = """import torch


class Net(torch.nn.Module):
    def forward(self, x):
        print("sum", x.sum())
        if x.sum() > 0:
            y = x * 2
        else:
            y = x + 1
        return y
"""
ROUNDS = """import torch
from torch import Tensor, nn


class Net(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:  # mended
            print("positive", x.sum().item())
            y = x + 1
        else:
            y = x * 3
        print("done")  # mended
        if y.mean() > 1:  # mended
            y = y * 2
        with open("file", "w") as f:  # left
            f.write("a")
        return y


torch.compile(Net(), backend="eager")
"""
PROGRAM = """import sys
import torch
from model import Net
from torch._dynamo.utils import counters

net = torch.compile(Net(), backend="aot_eager")
for sign in (1.0, -1.0):
    print(net(sign * torch.ones(2)).tolist())
print("breaks", sum(counters["graph_break"].values()), file=sys.stderr)
"""

SEES = '''"""What a program sees of itself."""
import inspect, pickle, sys

class Thing: ...

def function():
    return 1

assert sys.modules["__main__"].__dict__ is globals()
pickle.loads(pickle.dumps(Thing()))
print(__doc__, __name__, __file__, __package__, __spec__ and __spec__.name, sys.argv, sys.path[0])
print(inspect.getsource(function), type(__loader__).__name__.replace("MendingLoader", "SourceFileLoader"))
import helper
print(helper.__name__, helper.__file__, helper.__spec__.origin)
'''


@pytest.mark.parametrize(
    "words",
    [
        ["program.py", "a", "--mend", "b", "-m", "--", "c"],
        ["-m", "program", "--unsafe", "-x"],
        ["-m", "pack", "a"],
        ["-m", "pack.inner"],
        ["deep/program.py"],
    ],
)
def test_a_program_sees_what_python_shows_it(run: Run, words: list[str]) -> None:
    files = {
        "program": SEES,
        "helper": "",
        "deep__in__program": SEES,
        "deep__in__helper": "",
        "pack__in____init__": "",
        "pack__in____main__": SEES,
        "pack__in__inner": SEES,
    }
    expected, got = run(*words, plain=True, **files), run(*words, **files)
    assert expected.status == 0
    assert (got.status, got.stdout, got.stderr) == (0, expected.stdout, expected.stderr)
    assert got.said == ["graphmend: nothing was mended"]


HELPER = """def fails(n):
    try:
        return 1 / n
    except ZeroDivisionError as e:
        raise KeyError(n) from e
"""


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("import sys; sys.exit()", 0),
        ("import sys; sys.exit(7)", 7),
        ("import sys; sys.exit('a message')", 1),
        ("import helper\n\nhelper.fails(0)\n", 1),
        ("def (:\n", 1),
        ("import not_there_at_all\n", 1),
        ("import broken\n", 1),
        ("import atexit\natexit.register(print, 'at exit')\n", 0),
        ("import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.2), print('late'))).start()\n", 0),
        ("import sys\nsys.excepthook = lambda *a: print('hook', a[0].__name__)\n1 / 0\n", 1),
    ],
)
def test_a_program_ends_as_under_python(run: Run, text: str, status: int) -> None:
    files = {
        "program": text,
        "helper": HELPER,
        "broken": "import broken_inside\n",
        "broken_inside": "1 / 0\n",
    }
    expected, got = run("program.py", plain=True, **files), run("program.py", **files)
    assert (got.status, got.stdout, got.stderr) == (status, expected.stdout, expected.stderr)
    assert expected.status == status


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["missing.py"], "graphmend: run: missing.py: No such file or directory"),
        (["."], "graphmend: run: .: Is a directory"),
        ([], "graphmend: run: name a script, or a module with -m"),
        (["-m"], "graphmend: run: -m needs the name of a module"),
        (["-m", "not_there_at_all"], "graphmend: run: no module named not_there_at_all"),
        (["-m", "pack.inside"], "graphmend: run: no module named pack.inside"),
        (["--mend", "torch", "program.py"], "graphmend: torch is never mended"),
        (["--mend", "json.decoder", "program.py"], "graphmend: json.decoder is never mended"),
    ],
)
def test_wrong_use_is_one_line_and_status_2(run: Run, words: list[str], said: str) -> None:
    got = run(*words, program="print('ran')\n", pack__in____init__="")
    assert (got.status, got.stdout, got.stderr, got.said) == (2, "", [], [said])


@pytest.mark.torch
def test_a_model_is_mended_and_again_from_the_cache(run_warm: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch", minversion="2.13")
    plain = run_warm("program.py", plain=True, program=PROGRAM, model=MODEL)
    for _ in range(2):
        mended = run_warm("program.py")
        assert (mended.status, mended.stdout) == (0, plain.stdout)
        assert mended.stderr == ["breaks 0"] != plain.stderr
        assert mended.said[:2] == ["graphmend: mended 1 module", f"  {tmp_path / 'model.py'}"]
        assert [line.split()[1] for line in mended.said[2:]] == ["GM201", "GM101"]
    entries = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert entries
    for entry in entries:
        entry.write_bytes(b"\0 not what was written \xff")
    assert run_warm("program.py").said == mended.said


@pytest.mark.torch
@pytest.mark.parametrize("target", [["--mend", "model"], ["--mend", "elsewhere"]])
def test_named_packages_replace_the_programs_own_folder(run_warm: Run, tmp_path: Path, target: list[str]) -> None:
    pytest.importorskip("torch", minversion="2.13")
    program = MODEL + PROGRAM
    got = run_warm(*target, "--report", "report.json", "program.py", program=program, model=MODEL, elsewhere="")
    said = "mended 1 module; report.json says how" if "model" in target else "nothing was mended; report.json says why"
    assert (got.status, got.said) == (0, [f"graphmend: {said}"])
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["unused"] == ([] if "model" in target else ["elsewhere"])
    assert [entry["path"] for entry in report["mended"]] == ([str(tmp_path / "model.py")] if "model" in target else [])
    for entry in report["mended"]:
        assert {(note["row"], note["code"], note["applicability"]) for note in entry["mends"]} == {
            (6, "GM201", "safe"),
            (7, "GM101", "safe"),
        }


@pytest.mark.torch
def test_rows_are_those_of_the_file(run_warm: Run, tmp_path: Path) -> None:
    """A branch whose sides print is mended in several rounds, each of which sees a text of its own."""
    pytest.importorskip("torch", minversion="2.13")
    run_warm("--unsafe", "--report", "report.json", "program.py", program=ROUNDS)
    report = json.loads((tmp_path / "report.json").read_text())
    rows = ROUNDS.splitlines()
    marked = {number for number, row in enumerate(rows, 1) if "# mended" in row}
    (entry,) = report["mended"]
    assert {note["row"] for note in entry["mends"]} == marked
    for note in entry["mends"]:
        assert rows[note["row"] - 1][note["column"] - 1] != " "
    assert [rows[note["row"] - 1].strip() for note in report["left"]] == ['with open("file", "w") as f:  # left']


@pytest.mark.torch
def test_a_script_is_mended_with_its_folder(run_warm: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch", minversion="2.13")
    got = run_warm("program.py", program=MODEL)
    assert got.said[:2] == ["graphmend: mended 1 module", f"  {tmp_path / 'program.py'}"]


@pytest.mark.torch
def test_modules_from_the_cache_and_new_ones(run_warm: Run, tmp_path: Path) -> None:
    """The first that is asked of the process that mends comes with texts that it has not mended."""
    files = {"model": MODEL, "late": MODEL.replace("x * 2", "x * 3")}
    program = "import sys\nimport model\nif sys.argv[1:]:\n    import late\n"
    assert "mended 1 module" in run_warm("main.py", main=program, **files).said[0]
    both = run_warm("main.py", "late")
    assert (both.status, both.stderr) == (0, [])
    assert "mended 2 modules" in both.said[0], both.said


@pytest.mark.torch
def test_a_cache_that_cannot_be_written_is_ignored(run_warm: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch", minversion="2.13")
    (tmp_path / "file").write_text("")
    got = run_warm("program.py", program=MODEL, cache=tmp_path / "file" / "cache")
    assert got.status == 0
    assert got.said[0] == "graphmend: mended 1 module"


def test_a_report_that_cannot_be_written_is_said(run: Run) -> None:
    got = run("--report", "no/such/folder.json", "program.py", program="print('ran')\n")
    assert (got.status, got.stdout) == (0, "ran\n")
    assert got.said == ["graphmend: run: no/such/folder.json: No such file or directory"]


TOTAL = "import torch\n\n\n@torch.compile\ndef total(x: torch.Tensor):\n    return x[x > 0].sum()\n"


@pytest.mark.torch
def test_accepted_differences_are_made_and_reported(run_warm: Run, tmp_path: Path) -> None:
    files = {"model": TOTAL, "program": "from model import total\n"}
    assert run_warm("program.py", **files).said[0] == "graphmend: nothing was mended"
    said = run_warm("--accept", "strides,rounding", "--report", "report.json", "program.py", **files)
    assert said.status == 0
    (mended,) = json.loads((tmp_path / "report.json").read_text())["mended"]
    (mend,) = mended["mends"]
    assert (mend["applicability"], mend["differences"]) == ("safe", ["rounding"])
    lines = run_warm("--accept", "rounding", "program.py", **files).said
    assert "(accepted: sums may round differently" in "".join(lines)
    assert run_warm("--accept", "strides", "program.py", **files).said[0] == "graphmend: nothing was mended"


def test_an_unknown_difference_is_refused(run: Run) -> None:
    done = run("--accept", "roundin", "program.py", program="print(1)\n")
    assert (done.status, done.stdout) == (2, "")
    assert 'not "roundin"; did you mean `rounding`?' in done.said[0]


CAPTURES = """import torch
from torch._dynamo.utils import counters


def shifted(x, mask):
    kept = x[mask] + x
    count = (x * mask).sum().int().item()
    for _ in range(count):
        kept = kept * 2
    return kept + x.mean().item()


compiled = torch.compile(shifted, backend="eager")
x = torch.arange(4.0)
for mask in (x >= 0, x == 1, x > 0):
    try:
        print(compiled(x, mask).tolist())
    except RuntimeError:
        print("RuntimeError")
"""


@pytest.mark.torch
def test_numbers_are_captured_and_what_was_taken_back_is_reported(run_warm: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch", minversion="2.13")
    plain = run_warm("program.py", plain=True, program=CAPTURES)
    got = run_warm("--report", "report.json", "program.py", program=CAPTURES)
    assert (got.status, got.stdout) == (0, plain.stdout)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["captures"] is True
    rows = CAPTURES.splitlines()
    taken_back = [(rows[note["row"] - 1].strip(), note["reason"]) for note in report["taken_back"]]
    assert ("count = (x * mask).sum().int().item()", "its value must be known while tracing") in taken_back
    picked = [reason for row, reason in taken_back if row == "kept = x[mask] + x"]
    assert any("could not go on with the values of a call" in reason for reason in picked)
    assert not any("mean" in row for row, _ in taken_back)
    kept = [rows[note["row"] - 1].strip() for note in report["kept"]]
    assert any("mean" in row for row in kept)


SIZES = """import torch


def cut(x, sizes):
    x = x * 1
    return torch.cat([part * n for n, part in enumerate(x.split(sizes.tolist()))])


graphs = []
compiled = torch.compile(cut, backend=lambda graph, _: graphs.append(graph) or graph.forward)
for sizes in ([1, 3], [1, 3], [2, 2]):
    print(compiled(torch.arange(4.0), torch.tensor(sizes)).tolist(), len(graphs))
"""


@pytest.mark.torch
def test_values_are_taken_as_known_until_they_change(run_warm: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch", minversion="2.13")
    counts = {}
    for words in ([], ["--specialize"]):
        got = run_warm(*words, "--report", "report.json", "program.py", program=SIZES)
        values, counts[tuple(words)] = zip(*(line.rsplit(" ", 1) for line in got.stdout.splitlines()), strict=True)
        assert values == ("[0.0, 1.0, 2.0, 3.0]", "[0.0, 1.0, 2.0, 3.0]", "[0.0, 0.0, 2.0, 3.0]")
        report = json.loads((tmp_path / "report.json").read_text())
        assert any("a call had others" in note["reason"] for note in report["taken_back"]) == (not words)
    # taken back, the sizes are kept in the graph where plain TorchDynamo breaks at `tolist`
    assert counts == {(): ("1", "1", "2"), ("--specialize",): ("1", "1", "2")}


EXPERTS = """import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.gate = nn.Linear(4, 3)

    def forward(self, x):
        weights, chosen = torch.topk(self.gate(x).softmax(-1), 2)
        mask = nn.functional.one_hot(chosen, num_classes=3).permute(2, 1, 0)
        out = torch.zeros_like(x)
        for e in range(3):
            at, rows = torch.where(mask[e])
            if rows.numel() > 0:
                part = self.layers[e](x[rows]).flip(0).cumsum(0) * weights[rows, at, None]
                out.index_add_(0, rows, part)
        return out


torch.manual_seed(0)
model, graphs = Experts(), []
compiled = torch.compile(model, backend=lambda graph, _: graphs.append(graph) or graph.forward)
with torch.no_grad():
    for x in (torch.randn(6, 4), torch.ones(6, 4)):
        print(compiled(x).sum(0), len(graphs))
"""


@pytest.mark.torch
def test_sizes_that_only_a_question_asked_for_are_captured(run_warm: Run) -> None:
    pytest.importorskip("torch", minversion="2.13")
    plain = run_warm("program.py", plain=True, program=EXPERTS)
    got = run_warm("--unsafe", "program.py", program=EXPERTS)
    sums, counts = zip(*(line.rsplit(" ", 1) for line in got.stdout.splitlines()), strict=True)
    assert sums == tuple(line.rsplit(" ", 1)[0] for line in plain.stdout.splitlines())
    assert counts == ("1", "1")


@pytest.mark.torch
def test_mends_and_runtime_capture_with_the_same_versions() -> None:
    switches = pytest.importorskip("graphmend.runtime.switches")
    assert (CAPTURES_FROM, CAPTURES_FROM_PYTHON) == (switches.OLDEST, switches.OLDEST_PYTHON)


@pytest.mark.torch
def test_breaks_that_only_unsafe_mends_answer_are_counted(run_warm: Run) -> None:
    model = "import torch\n@torch.compile\ndef f(x):\n    if x.mean() > 3:\n        x = x * 2\n    return x\n"
    said = run_warm("main.py", main="import model\n", model=model).said
    assert said[1].startswith("graphmend: 1 break is left as it was, of which --unsafe may mend 1 "), said
