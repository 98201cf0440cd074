"""The file of results: whole lines, one sweep at a time, whatever happens to the disk or the process."""

from __future__ import annotations

import errno
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphmend.cli.failures import UsageError, complain
from graphmend.cli.main import main
from graphmend.cli.output.sweep import parquet
from graphmend.cli.output.sweep.causes import causes
from graphmend.cli.output.verify.full import Page
from graphmend.cli.sweeping import one_target
from graphmend.cli.sweeping import results as results_module
from graphmend.cli.sweeping.outcome import Model, models, reason_of, worst
from graphmend.cli.sweeping.results import NotWritten, Results
from graphmend.cli.sweeping.task import Options, Task, torch_version
from graphmend.dynamo.comparison import Comparison, Difference
from graphmend.dynamo.report import Report, TargetReport


def broken(row: int, gb_id: str = "GB0170", source: str = "if x.sum() > 0:") -> dict[str, Any]:
    return {
        "filename": "net.py",
        "location": {"row": row, "column": 1},
        "gb_id": gb_id,
        "gb_type": "Data-dependent branching",
        "source": source,
    }


def made(target: str, outcome: str = "one-graph", before: Any = (), after: Any = (), **more: Any) -> dict[str, Any]:
    """A line, as far as what reads it looks."""
    name = target.rpartition(":")[2]
    failed = outcome == "failed"
    model = Model(name, outcome, more.get("reason"), more.get("problem"), breaks=len(before), breaks_mended=len(after))
    side = {"torch": "2.13.0", "after": None, "targets": [{"name": name, "breaks": list(before)}]}
    mended = {**side, "targets": [{"name": name, "breaks": list(after)}]}
    return {
        "target": target,
        "outcome": outcome,
        "reason": None,
        "problem": None,
        "models": [model._asdict()],
        "mends": {"made": 0, "filenames": []},
        "report": None if failed else {**side, "after": mended},
        "options": Options().deciding(),
        "graphmend": "0",
        **more,
        "run": {"node": "here", "seconds": 1.5, "cpu_seconds": 1.0, "memory": 1000, "output": ""},
    }


def test_lines_are_kept_and_the_newest_counts(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    results = Results(path)
    for line in (made("a"), made("b"), made("a", "breaks")):
        results.add(line)
    results.close()
    again = Results(path)
    assert {target: line["outcome"] for target, line in again.lines.items()} == {"a": "breaks", "b": "one-graph"}
    assert again.repaired == 0
    again.close()


@pytest.mark.parametrize("cut", [1, 5, 40, 10_000])
def test_a_line_that_was_cut_is_removed(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "out.jsonl"
    whole = json.dumps(made("a"), separators=(",", ":")) + "\n"
    path.write_text(whole + whole.replace('"a"', '"b"')[:-1][:cut])
    results = Results(path)
    assert list(results.lines) == ["a"]
    assert results.repaired
    results.add(made("b"))
    results.close()
    assert [json.loads(line)["target"] for line in path.read_text().splitlines()] == ["a", "b"]


@pytest.mark.parametrize(
    "text", ["hello\n", "hello", "{}\n", "[1]\n", '{"target": "a"}\n', '{"target":"a"\n', "{\n}\n"]
)
def test_what_is_no_file_of_results_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with pytest.raises(UsageError, match=":1 is no line of a sweep"):
        Results(path)
    assert path.read_text() == text
    for place, words in ((tmp_path, "not a regular file"), (tmp_path / "none" / "out.jsonl", "cannot be opened")):
        with pytest.raises(UsageError, match=words):
            Results(place)


def test_two_sweeps_do_not_share_a_file(tmp_path: Path) -> None:
    """Also not from two processes; what the system takes back is the lock of one that was killed."""
    path = tmp_path / "out.jsonl"
    code = f"""
import sys, pathlib
from graphmend.cli.sweeping.results import Results
held = Results(pathlib.Path({str(path)!r}))
print("held", flush=True)
sys.stdin.read()
"""
    holder = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(UsageError, match="another sweep is writing"):
        Results(path)
    holder.kill()
    holder.communicate()
    Results(path).close()


class Full:
    """A file on a disk that has room for a few bytes more."""

    def __init__(self, file: Any, room: int) -> None:
        self._file, self._room = file, room

    def write(self, data: Any) -> int:
        if not self._room:
            raise OSError(errno.ENOSPC, "No space left on device")
        written: int = self._file.write(bytes(data)[: self._room])
        self._room -= written
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def test_a_full_disk_costs_no_line_that_was_written(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    results = Results(path)
    results.add(made("a"))
    before = path.read_bytes()
    results._file = Full(results._file, 10)  # type: ignore[assignment]
    with pytest.raises(NotWritten, match="no space left on device"):
        results.add(made("b"))
    assert path.read_bytes() == before
    assert list(results.lines) == ["a"]
    results.close()


class Interrupted:
    """A file whose reader presses Ctrl-C when half a line is written."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, data: Any) -> int:
        self._file.write(data[: len(data) // 2])
        raise KeyboardInterrupt

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def test_an_interrupt_in_a_line_takes_it_back(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    results = Results(path)
    results._file = Interrupted(results._file)  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        results.add(made("a"))
    assert path.read_bytes() == b""
    assert not results.lines
    results.close()


def test_an_interrupt_behind_a_whole_line_leaves_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out.jsonl"
    results = Results(path)

    def interrupted(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(results_module.os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        results.add(made("a"))
    assert list(results.lines) == ["a"]
    results.close()
    assert path.read_bytes().count(b"\n") == 1


# what is made of the lines

LINES = [
    made("a.py:A", "mended", [broken(3), broken(9)], []),
    made("b.py:B", "fewer", [broken(3), broken(5, "GB0059", "print('<b>')")], [broken(5, "GB0059", "print('<b>')")]),
    made("c.py:C"),
    made("d.py:D", "failed", reason="timeout", problem="no answer in <the> time allowed"),
]


def test_the_most_frequent_cause_comes_first() -> None:
    first, second = causes(LINES)
    assert (first.name[:6], first.plain, first.mended, len(first.models)) == ("GB0170", 3, 0, 2)
    assert (second.name[:6], second.plain, second.mended) == ("GB0059", 1, 1)
    assert [(place.row, counts) for place, counts in first.most()] == [(3, [2, 0]), (9, [1, 0])]


def test_where_nothing_was_mended_the_breaks_are_left() -> None:
    line = made("a.py:A", "breaks", [broken(3)], [broken(3)])
    line["report"]["after"] = None
    (cause,) = causes([line])
    assert (cause.plain, cause.mended) == (1, 1)
    line["options"]["mended"] = False
    (cause,) = causes([line])
    assert (cause.plain, cause.mended) == (1, 0)


def write_lines(path: Path, lines: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


def test_the_report_alone_is_made_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_lines(folder / "out.jsonl", LINES)
    assert main(["sweep", "-o", "out.jsonl"]) == 1
    told = capsys.readouterr().out
    assert "4 targets: 1 one-graph, 1 mended, 1 fewer, 1 failed" in told
    page = (folder / "out.jsonl.html").read_text()
    assert page.index("GB0170") < page.index("GB0059")
    assert "3 → 0, in 2 models" in page
    assert page.count("<svg") == 2
    assert "no answer in &lt;the&gt; time allowed" in page
    assert "<b>')" not in page
    assert not re.search(r"(src|href)=|url\(|@import|https?:", page)
    write_lines(folder / "out.jsonl", [LINES[0], LINES[2]])
    assert main(["sweep", "-o", "out.jsonl"]) == 0


def test_a_report_that_cannot_be_written_costs_no_result(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lines(folder / "out.jsonl", LINES)
    before = (folder / "out.jsonl").read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("graphmend.workspace.files._replace", full)
    assert main(["sweep", "-o", "out.jsonl"]) == 2
    errors = capsys.readouterr().err
    assert "the report cannot be written: no space left on device; the 4 results in out.jsonl are kept" in errors
    assert (folder / "out.jsonl").read_bytes() == before
    assert not (folder / "out.jsonl.html").exists()


def test_parquet_has_a_row_for_each_model() -> None:
    pyarrow = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.read_table(io.BytesIO(parquet.data(LINES)))
    assert table.column("target").to_pylist() == ["a.py:A", "b.py:B", "c.py:C", "d.py:D"]
    assert table.column("breaks").to_pylist() == [2, 2, 0, 0]
    assert table.column("breaks_mended").to_pylist() == [0, 1, 0, 0]
    assert json.loads(table.column("report").to_pylist()[0])["torch"] == "2.13.0"


def test_the_worst_of_a_file_counts() -> None:
    several = [Model(name, name, None, None) for name in ("mended", "worse", "one-graph")]
    assert worst(several).name == "worse"


def test_what_a_line_says_is_the_same_on_every_machine(tmp_path: Path) -> None:
    task = Task("net.py", False, "Net", str(tmp_path), (), Options())
    problem = f"{tmp_path}/net.py: <function f at 0x7fd31b5e4ae0> and 0x10 in /elsewhere/net.py"
    line = one_target.lost(task, problem)
    assert line["problem"] == "net.py: <function f at 0x> and 0x10 in /elsewhere/net.py"
    installed = one_target.lost(task, "/usr/lib/python3/site-packages/package/net.py")
    assert installed["problem"] == "package/net.py"


def tried(raised: str) -> str:
    """What the worker says where nothing fits."""
    what = f"the one try: Net()(torch.randn(2, 3)): {raised} (net.py:7)"
    return f"no inputs found for Net ({what}); write them above it: # graphmend: example Net(...)(torch.randn(...))"


@pytest.mark.torch
def test_that_is_what_the_worker_says() -> None:
    from graphmend.dynamo.worker.discover import Target
    from graphmend.dynamo.worker.runs.fitting import nothing_fits

    said = nothing_fits(Target("Net", "class", None), ["Net()(torch.randn(2, 3)): ValueError: no (net.py:7)"])
    assert said == tried("ValueError: no")


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        ("no answer in the time allowed, while compiling Net", "timeout"),
        ("the check was ended by SIGKILL (perhaps out of memory) while finding inputs for Net", "died"),
        ("Net does not run on its declared inputs (x): RuntimeError: CUDA out of memory. Tried", "memory"),
        ("Net does not run on its declared inputs (x): AssertionError: Torch not compiled with CUDA enabled", "gpu"),
        ("net.py cannot be imported: ModuleNotFoundError: No module named 'x'", "import"),
        ("Net raises ValueError: no", "raises"),
        ("net.py has nothing to check: no nn.Module class with a forward, nothing compiled", "nothing"),
        ("Net: no answer in the time allowed, while finding inputs for Net", "timeout"),
        ("/a b/net.py cannot be imported: RuntimeError: No CUDA GPUs are available", "gpu"),
        ("net.py calls sys.exit(1) at import", "import"),
        ("net.py has no Nett (did you mean Net?)", "import"),
        ("Net has no method run", "import"),
        ("the interpreter /none/python does not exist or cannot be run", "import"),
        ("the checked code called sys.exit(3)", "raises"),
        ("the checked code ended the process (exit status 3) while compiling Net", "died"),
        ("Net does not fit into memory: OutOfMemoryError: CUDA out of memory", "memory"),
        ("Net raises MemoryError (net.py:3)", "memory"),
        ("device cuda cannot be used: this torch is built for the CPU only", "gpu"),
        (tried("RuntimeError: mat1 and mat2 shapes cannot be multiplied"), "inputs"),
        (tried("AssertionError: Torch not compiled with CUDA enabled"), "gpu"),
        (tried("MemoryError"), "memory"),
        # the model's own words
        (tried("ValueError: the option tap does not exist in this build"), "inputs"),
        (tried("ValueError: this layer took longer than it should"), "inputs"),
        (tried("ValueError: the check was ended by hand"), "inputs"),
        (tried("ValueError: x: MemoryError"), "inputs"),
        ("Net raises ValueError: no answer in the time allowed", "raises"),
        ("Net raises ValueError: CUDA out of memory", "raises"),
        ("Net does not run on its declared inputs (x): ValueError: a has no b", "raises"),
        ("net.py cannot be imported: ValueError: the check ran out of memory", "import"),
    ],
)
def test_reasons(problem: str, reason: str) -> None:
    assert reason_of(problem) == reason


@pytest.mark.parametrize(
    ("details", "outcome", "reason"),
    [
        (["raises MemoryError where the original returns"], "worse", "memory"),
        (["raises OutOfMemoryError: CUDA out of memory. Tried where the original returns"] * 2, "worse", "memory"),
        (
            [
                "raises RuntimeError in the backward pass: [enforce fail at alloc_cpu.cpp:117] err == 0. "
                "DefaultCPUAllocator: can't allocate memory: you tried where the original returns"
            ],
            "worse",
            "memory",
        ),
        (["raises MemoryError where the original returns", "result is 2 instead of 1"], "differs", None),
        (["raises RuntimeError: mat1 and mat2 where the original returns"], "differs", None),
        (["returns where the original raises MemoryError"], "differs", None),
    ],
)
def test_a_mended_text_that_lacks_memory_gives_no_other_answer(
    details: list[str], outcome: str, reason: str | None
) -> None:
    kinds = ["value" if detail.startswith("result") else "exception" for detail in details]
    found = tuple(Difference(kind, "given", detail) for kind, detail in zip(kinds, details, strict=True))
    mended = TargetReport("Net", "checked", comparison=Comparison(3, found=found))
    plain = TargetReport("Net", "checked")
    model = models(Report("net.py", targets=(plain,), after=Report("net.py", targets=(mended,))))[0]
    assert (model.outcome, model.reason) == (outcome, reason)


def test_reports_have_names_of_their_own(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("my.results", "my.jsonl"):
        write_lines(folder / name, LINES[2:3])
        before = (folder / name).read_bytes()
        assert main(["sweep", "-o", name]) == 0
        assert (folder / name).read_bytes() == before
        assert (folder / f"{name}.html").is_file()
    for name in ("page.html", "page.HTML", "rows.parquet"):
        write_lines(folder / name, LINES)
        before = (folder / name).read_bytes()
        assert main(["sweep", "-o", name]) == 2
        assert "names a report" in capsys.readouterr().err
        assert (folder / name).read_bytes() == before


def test_a_target_is_called_in_its_line_as_it_was_asked_for() -> None:
    """Else the sweep that goes on would not know it again."""
    for place in ("/var/tmp/m2/a.py", "/usr/lib/python3/site-packages/torch/nn/a.py"):
        task = Task(place, False, "Fine", "/tmp", (), Options())
        assert one_target.lost(task, "no")["target"] == task.target


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("/var/tmp/m2/a.py is not there", "/var/tmp/m2/a.py is not there"),
        ("/tmp/a.py and '/tmp/b.py' (/tmp/c.py)", "a.py and 'b.py' (c.py)"),
        ("file:///tmp/a.py, x=/tmp/b.py", "file:///tmp/a.py, x=b.py"),
    ],
)
def test_the_root_is_left_out_where_a_path_begins_with_it(text: str, told: str) -> None:
    assert one_target.lost(Task("a.py", False, "", "/tmp", (), Options()), text)["problem"] == told


@pytest.mark.parametrize("missing", ["reason", "problem", "models", "mends", "report", "options", "graphmend", "run"])
def test_a_line_that_lacks_something_is_none_of_a_sweep(tmp_path: Path, missing: str) -> None:
    for line in (made("a"), made("b")):
        del line[missing]
        write_lines(tmp_path / "out.jsonl", [made("first"), line])
        with pytest.raises(UsageError, match=":2 is no line of a sweep"):
            Results(tmp_path / "out.jsonl")


def test_parts_of_a_line_that_lack_something(tmp_path: Path) -> None:
    wrong = [made("a", run={}), made("a", options={}), made("a", models=[{"name": "a"}]), made("a", outcome="fine")]
    wrong[0]["run"] = {}
    for line in wrong:
        write_lines(tmp_path / "out.jsonl", [line])
        with pytest.raises(UsageError, match=":1 is no line of a sweep"):
            Results(tmp_path / "out.jsonl")


# what is refused before anything runs

MODEL = "from torch import nn\n\nclass Fine(nn.Module):\n    def forward(self, x):\n        return x\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--accept", "nonsense"], "nonsense"),
        (["--device", "foo"], "neither auto, cpu, cuda nor cuda:N: foo"),
        (["--mend", "no_such_package"], "--mend no_such_package: the package cannot be found"),
        (["--python", "/none/python"], "--python /none/python does not exist"),
        (["--address", "127.0.0.1:1"], "no Ray cluster answers"),
        (["no_such_package"], "neither a file, a folder nor a module"),
        (["--memory", "0.5"], "not a size"),
    ],
)
def test_wrong_options_leave_nothing_behind(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    (folder / "a.py").write_text(MODEL)
    try:
        status = main(["sweep", *words, "a.py", "-o", "out.jsonl"])
    except SystemExit as error:  # argparse
        status = int(error.code or 0)
    assert status == 2
    assert told in capsys.readouterr().err
    assert not (folder / "out.jsonl").exists()


def test_only_an_empty_file_that_was_made_is_removed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Results(folder / "new").close()
    assert not (folder / "new").exists()
    (folder / "old").touch()
    assert main(["sweep", "-o", "old"]) == 2
    assert "nothing to report on: old has no line" in capsys.readouterr().err
    assert (folder / "old").exists()


def test_results_with_other_options_are_not_mixed(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever targets they are of; `--again` replaces only those that it runs."""
    monkeypatch.setattr("graphmend.cli.commands.sweep.torch_version", lambda _: None)
    monkeypatch.setattr("graphmend.cli.commands.sweep._running", lambda args, left: [made(t.target) for t in left])
    (folder / "a.py").write_text(MODEL)
    write_lines(folder / "out.jsonl", [made("b.py:Fine")])
    before = (folder / "out.jsonl").read_text()
    for words in (["--plain"], ["--plain", "--again"]):
        assert main(["sweep", "a.py", "-o", "out.jsonl", *words]) == 2
        assert "results with another mended (b.py:Fine)" in capsys.readouterr().err
        assert (folder / "out.jsonl").read_text() == before
    assert main(["sweep", "a.py", "-o", "out.jsonl"]) == 0
    monkeypatch.setattr("graphmend.cli.commands.sweep.torch_version", lambda _: "1.0")
    assert main(["sweep", "a.py", "-o", "out.jsonl"]) == 2
    assert "another torch" in capsys.readouterr().err
    (folder / "b.py").write_text(MODEL)
    assert main(["sweep", "a.py", "b.py", "-o", "out.jsonl", "--again", "--plain"]) == 0


@pytest.mark.torch
def test_the_version_of_a_torch_is_read_from_its_files() -> None:
    import torch

    assert torch_version(sys.executable) == str(torch.__version__)


def test_control_characters_of_a_model_do_not_reach_the_terminal(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = made("a.py:Fine", "failed", reason="raises", problem="ValueError: \x1b[31mred\x9b\x07")
    monkeypatch.setattr("graphmend.cli.commands.sweep._running", lambda args, left: [line])
    (folder / "a.py").write_text(MODEL)
    assert main(["sweep", "a.py", "-o", "out.jsonl"]) == 1
    assert r"ValueError: \x1b[31mred\x9b\x07" in (told := capsys.readouterr().out)
    complain("no inputs found for Net (the one try: ValueError: \x1b[31mred)")
    assert r"ValueError: \x1b[31mred" in (errors := capsys.readouterr().err)
    assert "\x1b" not in told + errors
    out = io.StringIO()
    Page(out, verbose=True).write("raises \x1b[31mred\n")
    assert out.getvalue() == "raises \\x1b[31mred\n"
