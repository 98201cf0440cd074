"""What verify says of recompilations: the guard that failed, where it belongs, how often, and what changes would do."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphmend.cli.main import main
from graphmend.dynamo import watched_command
from graphmend.dynamo.report import Recompile, TargetReport, compilations, gathered, recompile
from graphmend.dynamo.worker.recording import guards

pytestmark = pytest.mark.torch

Check = Callable[..., TargetReport]


def text_at(again: Recompile) -> str:
    """The line that a recompilation belongs to."""
    return Path(again.path).read_text("utf-8").splitlines()[again.line - 1].strip()


def test_another_backend_is_told_where_torch_names_no_guard() -> None:
    """Torch 2.8 and 2.9 give an empty reason there."""
    found = guards.recompilation(test_sizes_belong_to_the_parameter.__code__, "0/0: ")
    assert gathered([recompile(found)])[0].subject == "BACKEND_MATCH"
    assert found["line"] == test_sizes_belong_to_the_parameter.__code__.co_firstlineno


def test_a_parameter_that_changes(check: Check) -> None:
    found = check(
        """
        @torch.compile
        def f(
            x,
            step,
        ):
            for _ in range(step):
                x = x + 1
            return x
        def example_inputs():
            return [(torch.ones(3), step) for step in (2, 3, 4, 5)]
        """
    )
    (again,) = found.recompiles
    assert (again.subject, again.times, again.limit) == ("step", 3, False)
    assert text_at(again) == "for _ in range(step):", "the loop that needs its value"
    assert again.seconds > 0
    assert compilations(found) == ", 4 compilations: `step` changes"


def test_sizes_belong_to_the_parameter(check: Check) -> None:
    found = check(
        """
        @torch.compile
        def f(
            x,
            y,
        ):
            return y * 2
        def example_inputs():
            return [(torch.ones(3), torch.ones(n)) for n in (2, 3)]
        """
    )
    (again,) = found.recompiles
    assert (again.subject, text_at(again)) == ("y", "y,")


def test_the_limit_is_told(check: Check) -> None:
    found = check(
        """
        @torch.compile(dynamic=False)
        def f(x):
            return x * 2
        def example_inputs():
            return [(torch.ones(n),) for n in range(2, 14)]
        """
    )
    (again,) = found.recompiles
    assert again.limit
    assert again.times >= 8


def test_made_up_inputs_are_varied_one_at_a_time(check: Check) -> None:
    found = check(
        """
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.drop = torch.nn.Dropout(0.1)
            def forward(self, x: torch.Tensor, scale: float = 2.0):
                return self.drop(x) * scale
        """,
        names=("Net",),
    )
    changed = {one.change: one.recompile for one in found.varied}
    assert "another call" in changed
    assert changed["another call"] is None
    by_subject = {again.subject for again in changed.values() if again is not None}
    assert {"x", "training", "grad_mode"} <= by_subject
    assert found.compilations == 1, "a change is asked for, and not compiled"
    assert len(found.varied) <= 12


def test_defaults_are_varied_too(check: Check) -> None:
    found = check(
        """
        @torch.compile
        def f(x: torch.Tensor, scale: float = 2.0, double: bool = False, name: str = "f"):
            return x * scale * 2 if double else x * scale
        """,
        names=("f",),
    )
    changed = {one.change: one.recompile for one in found.varied}
    for words, subject in {"scale=3.0 for 2.0": "scale", "double=True for False": "double"}.items():
        again = changed[words]
        assert again is not None
        assert again.subject == subject
    assert not any("name" in change for change in changed)


def test_a_module_of_torch_belongs_to_the_target(check: Check) -> None:
    found = check(
        """
        net = torch.compile(torch.nn.Linear(4, 2))
        def example_inputs():
            return [(torch.ones(n, 4),) for n in (2, 3)]
        """,
        names=("net",),
    )
    (again,) = found.recompiles
    assert (again.function, again.times) == ("Linear", 1)
    assert "size mismatch" in again.reason


def test_a_module_of_torch_belongs_to_the_line_that_calls_it(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import torch\n\nfor width in (2, 4, 8):\n    net = torch.compile(torch.nn.Linear(4, width), backend='eager')\n"
        "    net(torch.ones(3, 4))\n"
    )
    code = (
        "import json, sys\n"
        "from graphmend.dynamo.worker.recording.recorder import Recorder\n"
        "recorder = Recorder(lambda path: path.endswith('program.py'))\n"
        "with recorder:\n    import runpy\n    runpy.run_path(sys.argv[1])\n"
        "print(json.dumps(recorder.recompiles))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code, str(program)], capture_output=True, text=True, check=True)
    found = json.loads(ran.stdout.splitlines()[-1])
    assert [(one["function"], one["line"], Path(one["file"]).name) for one in found] == [
        ("Linear", 5, "program.py")
    ] * 2


def test_each_change_is_tried_by_itself(check: Check) -> None:
    """A size, a number, a truth value, gradients, strides and the dtype; a module's mode is tried above."""
    found = check(
        """
        @torch.compile
        def f(x: torch.Tensor, n: int = 2, scale: float = 2.0, double: bool = False):
            return (x.t() if double else x) * scale + n
        """,
        names=("f",),
    )
    words = [one.change for one in found.varied]
    for part in ("a leading size of", "n=3", "scale=3.0", "double=True", "no gradients", "not contiguous", "float64"):
        assert any(part in said for said in words), (part, words)
    assert len(words) == len(set(words)) <= 12


VARYING = """\
import torch


@torch.compile(backend="eager")
def step(x: torch.Tensor, rate: float = 0.5):
    return x * rate


"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that commands run in: paths are told from there."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_tells_of_recompilations(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")  # how long a run takes is part of a line, which is cut at the width
    inputs = "def example_inputs():\n    return [(torch.ones(n), 0.5) for n in (2, 3, 4)]\n"
    path = here / "model.py"
    path.write_text(VARYING + inputs)
    assert main(["verify", str(path), "--device", "cpu"]) == 0
    shown = capsys.readouterr().out
    assert "1 graph of 1 operations, 2 compilations: `x` changes" in shown
    assert "model.py:5: step compiled again" in shown
    assert "size mismatch at index 0. expected 2, actual 3" in shown
    assert main(["verify", str(path), "--device", "cpu", "--output-format", "json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    (again,) = report["targets"][0]["recompiles"]
    assert (again["row"], again["function"], again["subject"], again["limit"]) == (5, "step", "x", False)


def test_the_command_tells_what_would_be_compiled_again(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = here / "model.py"
    path.write_text(VARYING)
    assert main(["verify", str(path), "--device", "cpu", "--verbose"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"varied    rate=1.5 for 0.5: would be compiled again: .*rate\b.* == 0.5", shown)


def test_a_watched_command_tells_of_recompilations(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = here / "program.py"
    path.write_text(VARYING + "for n in range(2, 14):\n    step(torch.ones(n), n / 10)\n")
    assert main(["verify", "--", sys.executable, str(path)]) == 0
    shown = capfd.readouterr()
    assert re.search(r"program.py:\d+: step compiled again.*: .*(x|rate)", shown.out)


def test_what_raises_on_a_change_does_not_count(check: Check) -> None:
    found = check(
        """
        @torch.compile
        def f(x: torch.Tensor):
            if x.dim() > 1 and not x.is_contiguous():
                raise ValueError("not contiguous")
            return x.reshape(x.shape[0], -1) * 2
        """,
        names=("f",),
    )
    raised = [one for one in found.varied if one.raised is not None]
    assert any("ValueError" in str(one.raised) for one in raised)
    assert all(one.recompile is None for one in raised)


@pytest.mark.parametrize(
    ("reason", "subject"),
    [
        ("s == 0", "s"),
        ("L['s'] == 0", "s"),
        ("self.steps == 3", "steps"),
        ("L['self'].steps == 3", "steps"),
        ("tensor 'x' size mismatch at index 0. expected 2, actual 3", "x"),
        ("tensor 'L['x']' size mismatch at index 0. expected 2, actual 3", "x"),
        ("GLOBAL_STATE changed: grad_mode ", "grad_mode"),
        ("len(parts) == 2", "parts"),
        ("not ___dict_contains('mask', batch)", "mask"),
        ("G['SCALE'] == 2", "SCALE"),
        ("self._modules['drop'].training == True", "training"),
        ("", ""),
    ],
)
def test_subjects(reason: str, subject: str) -> None:
    assert Recompile("f.py", 1, "f", reason).subject == subject


@pytest.mark.parametrize(
    "text", ["0/1: ", "0/1: some guard of a kind that nobody knows", "0/1: n == 1  # gone.py:7 in g"]
)
def test_a_guard_without_a_line_of_the_file_belongs_to_the_function(text: str) -> None:
    def f(x: int) -> int:
        return x

    found = guards.recompilation(f.__code__, text)
    assert (found["file"], found["line"]) == (__file__, f.__code__.co_firstlineno)


def test_a_thousand_of_a_watched_program_are_one_each(tmp_path: Path) -> None:
    lines = [
        {"recompile": {"file": "f.py", "line": 1, "function": f"f{i % 3}", "reason": f"step == {i}", "seconds": 0.5}}
        for i in range(3000)
    ]
    (tmp_path / "1.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines) + '{"recompile": {"fi', "ascii"
    )
    found = watched_command._collect(tmp_path).recompiles
    assert [(one.function, one.times, one.subject) for one in found] == [(f"f{i}", 1000, "step") for i in range(3)]
    assert found[0].seconds == pytest.approx(500)


def test_very_many_are_bounded() -> None:
    many: list[Any] = [Recompile("f.py", 1, f"f{i % 200}", f"step == {i}") for i in range(5000)]
    found = gathered(many)
    assert len(found) == 50
    assert found[0].times == 25
