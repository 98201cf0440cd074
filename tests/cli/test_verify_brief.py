"""What `verify` prints of a break: six lines at most, as wide as the terminal, and a hint that is longer in full;
everything with `--verbose`.
"""

from __future__ import annotations

import io
import itertools
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from graphmend.analysis.syntax.span import Span
from graphmend.cli.output.verify import full
from graphmend.dynamo.report import Break, Frame, Report, RunInfo, TargetReport
from graphmend.dynamo.watched_command import Watched

HINTS = ("Set `torch._dynamo.config.capture_scalar_outputs = True`, or keep the number a tensor " * 3, "Or do not.")


def watched(folder: Path) -> Watched:
    """Three breaks at the end of long chains of calls; two of a kind, with long words."""

    def one(line: int, kind: str) -> Break:
        path = str(folder / "net.py")
        stack = tuple(Frame(path, f"function_{n}", Span(n, 0, n, 9)) for n in range(40, 46))
        span = Span(line, 8, line, 200)
        words = f"Unsupported Tensor.item() call with capture_scalar_outputs=False in {kind}"
        reason = "Dynamo does not trace `Tensor.item()`.\nIt takes a number out of the graph, " * 4
        source = "        " + "number = number + tensor.item() + " * 9
        return Break(
            path, span, "f", "skip", words, "GB0124", reason, HINTS, (*stack, stack[0]), count=3, source=source
        )

    return Watched(("python",), 0, None, 1, 4, (one(7, "a"), one(8, "a"), one(9, "b")))


def printed(folder: Path, *, verbose: bool = False) -> str:
    out = io.StringIO()
    full.write_watched(watched(folder), out, verbose=verbose)
    return out.getvalue()


@pytest.mark.parametrize("columns", [40, 60, 80, 120, 300])
def test_a_break_takes_six_lines_of_the_terminal_s_width(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.chdir(tmp_path)
    lines = printed(tmp_path).splitlines()
    begin = next(number for number, line in enumerate(lines) if "hint:" in line)
    end = next(number for number in range(begin + 1, len(lines)) if not lines[number].startswith(" " * 12))
    assert "".join("".join(lines[begin:end]).split()) == "".join(f"hint: {HINTS[0]}".split())
    lines[begin + 1 : end] = []
    starts = [number for number, line in enumerate(lines) if ": GB0124" in line] + [len(lines)]
    assert len(starts) == 4
    assert max(end - begin for begin, end in itertools.pairwise(starts)) <= 6
    assert max(map(cell_len, lines)) <= columns, max(lines, key=len)
    assert columns < 60 or all("eagerly (3 times)" in lines[number] for number in starts[:-1])  # what it costs
    assert sum("hint:" in line for line in lines) == 1


def test_verbose_cuts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    out = printed(tmp_path, verbose=True)
    assert all(hint in out for hint in HINTS)
    assert out.count("from net.py:4") == 18
    assert ("number = number + tensor.item() + " * 9).rstrip() in out


def test_a_break_of_two_targets_is_told_whole_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An object that the file compiles, and its class; what other inputs raise is a word in brief."""
    monkeypatch.chdir(tmp_path)
    span, path = Span(3, 8, 3, 18), str(tmp_path / "net.py")
    one = Break(path, span, "f", "break", "Data-dependent branching", "GB0170", "Detected it.", (), (), source="if x:")
    runs = (RunInfo("given", None), RunInfo("all zeros", "ValueError: zeros are none (net.py:4)"))
    targets = tuple(
        TargetReport(name, "checked", breaks=(replace(one, run=run),), runs=runs)
        for run, name in enumerate(("net", "Net"))
    )
    report = Report(path, targets)
    for verbose in (False, True):
        out = io.StringIO()
        full.write([report], [[]], [None], out, verbose=verbose)
        assert out.getvalue().count("Detected it.") == 1 + verbose
        assert out.getvalue().count("splits the graph, as above") == 1 - verbose
        assert ("also with all zeros (ValueError)" in out.getvalue()) is not verbose
        assert ("zeros are none" in out.getvalue()) is verbose


@pytest.mark.parametrize(("torch", "lines"), [("2.13.0+cpu", 0), ("2.13.0", 1)])
def test_that_a_run_was_on_the_cpu_is_told_once(tmp_path: Path, torch: str, lines: int) -> None:
    target = TargetReport("Net", "checked", origin="synthesised", device="cpu", inputs="Net()(torch.randn(2))")
    report = Report(str(tmp_path / "net.py"), torch=torch, targets=(target,), note="no CUDA device is available")
    out = io.StringIO()
    full.write([report], [[]], [None], out)
    assert out.getvalue().count("on the CPU: ") == lines
