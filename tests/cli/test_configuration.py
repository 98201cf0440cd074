"""Where settings come from, which of them hold, and what is said about wrong ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphmend.workspace.config import Configurations
from graphmend.workspace.options import ConfigurationError

Run = Callable[..., Any]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_nearest_file_wins_and_graphmend_toml_before_pyproject(folder: Path) -> None:
    write(folder / "pyproject.toml", "[tool.graphmend]\nselect = ['GM1']\n")
    write(folder / "a/pyproject.toml", "[tool.other]\n")
    write(folder / "b/pyproject.toml", "[tool.graphmend]\nselect = ['GM2']\n")
    write(folder / "b/graphmend.toml", "select = ['GM3']\n")
    found = Configurations()
    assert found.of_file(folder / "a/m.py")["select"] == ("GM1",)
    assert found.of_file(folder / "b/c/m.py")["select"] == ("GM3",)
    assert found.of_file(folder / "b/c/m.py").file == folder / "b/graphmend.toml"


def test_extend_is_relative_and_replaced_option_by_option(folder: Path) -> None:
    write(folder / "base/graphmend.toml", "select = ['GM1']\nignore = ['GM101']\n")
    write(folder / "p/graphmend.toml", "extend = '../base/graphmend.toml'\nignore = ['GM102']\n")
    configuration = Configurations().of_file(folder / "p/m.py")
    assert (configuration["select"], configuration["ignore"]) == (("GM1",), ("GM102",))


def test_extend_in_a_circle(folder: Path) -> None:
    write(folder / "graphmend.toml", "extend = 'b.toml'\n")
    write(folder / "b.toml", "extend = 'graphmend.toml'\n")
    with pytest.raises(ConfigurationError, match=r"circle: graphmend\.toml -> b\.toml -> graphmend\.toml"):
        Configurations().of_file(folder / "m.py")


@pytest.mark.parametrize("spelling", ["assume-compiled", "assume_compiled", "assumeCompiled"])
def test_every_spelling_of_a_name(folder: Path, spelling: str) -> None:
    write(folder / "graphmend.toml", f"{spelling} = 'never'\n")
    assert Configurations().of_file(folder / "m.py").settings().assume_compiled == "never"


def test_settings_of_the_analysis(folder: Path) -> None:
    text = "torch-version = '2.12.1'\nreturns-tensor = ['a.b']\nstatic = ['c']\nignore-calls = ['d']\n"
    write(folder / "graphmend.toml", text)
    settings = Configurations().of_file(folder / "m.py").settings("2.13")
    assert settings.torch_version == "2.12"
    assert (settings.returns_tensor, settings.static, settings.ignore_calls) == (("a.b",), ("c",), ("d",))
    assert Configurations(isolated=True).of_file(folder / "m.py").settings("2.13").torch_version == "2.13"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("interpreter = '/bin/sh'\n", "interpreter"),
        ("trusted = true\n", "trusted"),
        ("[verify]\nmode = 'onSave'\n", "verify.mode"),
        ("[verify]\nsomething-new = 1\n", "verify.something-new"),
        ("verify = 3\n", "verify"),
    ],
)
def test_project_may_not_choose_what_runs(folder: Path, text: str, name: str) -> None:
    write(folder / "graphmend.toml", text)
    configuration = Configurations().of_file(folder / "m.py")
    assert configuration.values == {}
    (note,) = configuration.notes
    assert f"`{name}` is ignored" in note


def test_caller_may_choose_what_runs(folder: Path) -> None:
    configuration = Configurations({"interpreter": "/usr/bin/python", "verify": {"mode": "onSave"}}).of_file(
        folder / "m.py"
    )
    assert (configuration["interpreter"], configuration["verify.mode"]) == ("/usr/bin/python", "onSave")


def test_targets_are_data(folder: Path) -> None:
    write(folder / "graphmend.toml", "[[targets]]\ntarget = 'm.py:Net'\ninputs = 'torch.ones(2)'\n")
    assert Configurations().of_file(folder / "m.py")["targets"] == ({"target": "m.py:Net", "inputs": "torch.ones(2)"},)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("selct = ['GM1']\n", "unknown option `selct`; did you mean `select`?"),
        ("assumecompiled = 'never'\n", "unknown option `assumecompiled`; did you mean `assume-compiled`?"),
        ("select = 'GM1'\n", "`select` must be a list of rule codes"),
        (
            "select = ['E501']\n",
            '`select` must be a rule code or the beginning of one, such as "GM1" or "GM101", not "E501"',
        ),
        ("assume-compiled = true\n", '`assume-compiled` must be "modules" or "never"'),
        ("select = ['gm101']\n", 'not "gm101"; did you mean "GM101"?'),
        ("exclude = 'x'\n", '`exclude` must be a list of strings, such as ["x"]'),
        ("torch-version = 'abc'\n", '`torch-version` must be a version of torch, such as 2.13, not "abc"'),
        ("device = 'cpu'\n", "unknown option `device`; did you mean `verify.device`?"),
        ("torch-version = 2.13\n", '`torch-version` must be a version of torch in quotes, such as "2.13"'),
        ("exclude = 3\n", "`exclude` must be a list of strings"),
        (
            "per-file-ignores = ['GM1']\n",
            "`per-file-ignores` must be a table of file patterns, each with a list of rule codes",
        ),
        ("[severity]\nGM1 = 'loud'\n", '`severity` must be "error", "warning", "information", "hint" or "off"'),
        ("preview = 1\n", "`preview` must be true or false"),
        ("[[targets]]\ninputs = 'x'\n", "`targets` must be a list of tables"),
        ("[code-lens]\nenabled = true\n", "unknown option `code-lens.enabled`; did you mean `code-lens.enable`?"),
        ("select = [\n", "graphmend.toml: "),
        ("select = ['GM107']\n", "`select` names no rule: `GM107`"),
    ],
)
def test_wrong_settings_are_one_line_and_status_2(run: Run, folder: Path, text: str, complaint: str) -> None:
    write(folder / "graphmend.toml", text)
    write(folder / "m.py", "x = 1\n")
    outcome = run("check")
    assert (outcome.status, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert str(folder / "graphmend.toml") in outcome.err
    assert complaint in outcome.err


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        ("absent.toml", "--config: absent.toml: no such file, nor KEY=VALUE"),
        ("sevrity.GM1='off'", "command line: unknown option `sevrity`; did you mean `severity`?"),
        ("torch-version=two", "command line: `torch-version` must be"),
    ],
)
def test_wrong_command_line_settings(run: Run, folder: Path, option: str, complaint: str) -> None:
    outcome = run("check", "--config", option)
    assert (outcome.status, outcome.err.count("\n")) == (2, 1)
    assert complaint in outcome.err


@pytest.mark.usefixtures("fake")
class TestEffects:
    def codes(self, run: Run, *arguments: str | Path) -> list[tuple[str, str]]:
        outcome = run("check", "--output-format", "json", *arguments)
        return [(Path(item["filename"]).name, item["code"]) for item in json.loads(outcome.out)]

    def test_select_and_ignore_of_file_and_command_line(self, run: Run, folder: Path) -> None:
        write(folder / "m.py", "BREAK\nPRINT\n")
        write(folder / "graphmend.toml", "select = ['GM2']\n")
        assert self.codes(run) == [("m.py", "GM201")]
        assert self.codes(run, "--select", "GM1,GM2", "--ignore", "GM2") == [("m.py", "GM101")]
        assert self.codes(run, "--isolated") == [("m.py", "GM101"), ("m.py", "GM201")]
        assert self.codes(run, "--config", "select=['GM101']") == [("m.py", "GM101")]

    def test_config_file_replaces_the_search(self, run: Run, folder: Path) -> None:
        write(folder / "m.py", "BREAK\nPRINT\n")
        write(folder / "graphmend.toml", "select = ['GM2']\n")
        write(folder / "other.toml", "select = ['GM1']\n")
        assert self.codes(run, "--config", "other.toml") == [("m.py", "GM101")]

    def test_per_file_ignores(self, run: Run, folder: Path) -> None:
        write(folder / "tests/a.py", "BREAK\nPRINT\n")
        write(folder / "src/b.py", "BREAK\nPRINT\n")
        write(
            folder / "graphmend.toml",
            "select = ['GM101', 'GM201']\n[per-file-ignores]\n'tests/*' = ['GM1']\n'!tests/**' = ['GM2']\n",
        )
        assert self.codes(run) == [("b.py", "GM101"), ("a.py", "GM201")]

    def test_severity(self, run: Run, folder: Path) -> None:
        write(folder / "m.py", "BREAK\nPRINT\nASSUMED\n")
        write(folder / "graphmend.toml", "[severity]\nGM1 = 'off'\nGM101 = 'error'\nGM2 = 'off'\n")
        out = json.loads(run("check", "--output-format", "json").out)
        assert [(item["code"], item["severity"]) for item in out] == [("GM101", "error"), ("GM101", "error")]
        out = json.loads(run("check", "--isolated", "--output-format", "json").out)
        assert [item["severity"] for item in out] == ["warning", "warning", "information"]

    def test_a_dot_leads_into_a_table_of_the_command_line(self, run: Run, folder: Path) -> None:
        write(folder / "m.py", "BREAK\nPRINT\n")
        options = ("--config", "severity.GM101=error", "--config", "severity.GM2=off")
        out = json.loads(run("check", "--output-format", "json", *options).out)
        assert [(item["code"], item["severity"]) for item in out] == [("GM101", "error")]
        assert self.codes(run, "--config", "per-file-ignores.'*.py'=['GM1']") == [("m.py", "GM201")]

    def test_gitignore_and_exclude(self, run: Run, folder: Path) -> None:
        for name in ("a/m.py", "gen/m.py", "gen/keep.py", ".venv/x.py", "old/m.py", "deep/gen/x.py"):
            write(folder / name, "BREAK\n")
        (folder / ".git").mkdir()
        write(folder / ".gitignore", "gen/*\n!gen/keep.py\n")
        write(folder / "graphmend.toml", "extend-exclude = ['old']\n")
        listed = run("check", "--show-files").out.split()
        assert [str(Path(f).relative_to(folder)) for f in listed] == ["a/m.py", "deep/gen/x.py", "gen/keep.py"]
        listed = run("check", "--show-files", "--config", "respect-gitignore=false").out.split()
        assert str(folder / "gen/m.py") in listed

    def test_what_is_named_is_looked_into(self, run: Run, folder: Path) -> None:
        write(folder / "build/lib/m.py", "BREAK\n")
        assert run("check", "--show-files").out == ""
        assert run("check", "--show-files", "build").out.split() == [str(folder / "build/lib/m.py")]
        assert run("check", "--show-files", "build/lib/m.py").out.split() == [str(folder / "build/lib/m.py")]
        assert run("check", "--show-files", "--force-exclude", "build/lib/m.py").out == ""

    def test_notes_of_a_project_are_told_once(self, run: Run, folder: Path) -> None:
        write(folder / "graphmend.toml", "interpreter = 'python'\n")
        write(folder / "a.py", "x = 1\n")
        write(folder / "b.py", "x = 1\n")
        outcome = run("check")
        assert outcome.status == 0
        assert outcome.err.count("`interpreter` is ignored") == 1

    def test_show_settings(self, run: Run, folder: Path) -> None:
        write(folder / "m.py", "x = 1\n")
        write(folder / "graphmend.toml", "select = ['GM2']\ninterpreter = 'python'\n")
        out = run("check", "--show-settings").out
        assert f"from {folder / 'graphmend.toml'}" in out
        assert 'select = ["GM2"]\n' in out
        assert 'assume-compiled = "modules"  # default\n' in out
        assert "\ninterpreter" not in out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("check --torch-version abc", '`torch-version` must be a version of torch, such as 2.13, not "abc"'),
        ("check --select gm101", 'not "gm101"; did you mean "GM101"?'),
        ("check --config select=GM101", '`select` must be a list of rule codes, such as ["GM101"]'),
        ("check --jobs 0", "argument --jobs/-j: not a whole number above 0: 0"),
        ("verify --batches 0 m.py", "argument --batches: not a whole number above 0: 0"),
        ("verify --timeout 0 m.py", "argument --timeout: not a number of seconds above 0: 0"),
        ("verify --device gpu m.py", "argument --device: neither auto, cpu, cuda nor cuda:N: gpu"),
        ("rule GM10", "`GM10` names several rules: GM101, GM102"),
        ("m.py", "; did you mean `graphmend check m.py`?"),
    ],
)
def test_wrong_values_on_the_command_line_are_one_line_and_status_2(
    run: Run, folder: Path, words: str, complaint: str
) -> None:
    write(folder / "m.py", "x = 1\n")
    outcome = run(*words.split())
    assert (outcome.status, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert complaint in outcome.err
    assert "internal error" not in outcome.err
