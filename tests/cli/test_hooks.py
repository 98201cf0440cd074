"""GraphMend where other tools start it: pytest, pre-commit, GitHub's runner."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

MODEL = """\
import torch


@torch.compile
def f(x):
    y = x + 1
    print("y", y)
    return y * 2
"""


@pytest.fixture
def environment(folder: Path) -> dict[str, str]:
    """With `graphmend` on the path, as it is where a tool has installed it."""
    programs = folder / "bin"
    programs.mkdir()
    script = programs / "graphmend"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m graphmend "$@"\n')
    script.chmod(0o755)
    return {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    options = ("-q", "-p", "graphmend.cli.commands.pytest_plugin", "-p", "no:cacheprovider", *arguments)
    command = [sys.executable, "-m", "pytest", *options]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_pytest_checks_files_where_asked(folder: Path) -> None:
    (folder / "model.py").write_text(MODEL)
    (folder / "test_it.py").write_text("def test_it(): pass\n")
    plain = run_pytest(folder)
    assert plain.returncode == 0, plain.stdout
    assert "1 passed" in plain.stdout
    checked = run_pytest(folder, "--graphmend")
    assert checked.returncode == 1
    assert "2 passed" in checked.stdout or "1 failed" in checked.stdout
    assert "model.py:7:5: GM201 print() writes output" in checked.stdout
    assert "graphmend: model.py" in checked.stdout


@pytest.mark.torch
def test_fixture_names_the_breaks(folder: Path) -> None:
    (folder / "test_model.py").write_text(
        "import torch\n"
        "def fine(x): return x + 1\n"
        "def broken(x):\n"
        "    y = x + 1\n"
        "    print(y)\n"
        "    return y\n"
        "def test_fine(assert_no_graph_breaks): assert_no_graph_breaks(fine, (torch.ones(2),))\n"
        "def test_broken(assert_no_graph_breaks): assert_no_graph_breaks(broken, torch.ones(2))\n"
    )
    done = run_pytest(folder)
    assert "1 failed, 1 passed" in done.stdout
    assert "1 graph break:" in done.stdout
    assert f"{folder / 'test_model.py'}:5: in broken: " in done.stdout
    assert "torch.__trace" not in done.stdout


@pytest.mark.skipif(os.name == "nt", reason="a shell script")
class TestHooks:
    def hook(self, root: Path, name: str) -> list[str]:
        """The command of a hook, from a file whose form is simple enough to be read line by line."""
        text = (root / ".pre-commit-hooks.yaml").read_text()
        (entry,) = (block for block in text.split("- id: ") if block.startswith(name + "\n"))
        (line,) = (line for line in entry.splitlines() if line.strip().startswith("entry: "))
        return shlex.split(line.partition("entry: ")[2])

    def run(self, command: list[str], folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)

    def test_check_hook(self, root: Path, folder: Path, environment: dict[str, str]) -> None:
        (folder / "model.py").write_text(MODEL)
        done = self.run([*self.hook(root, "graphmend-check"), "model.py"], folder, environment)
        assert (done.returncode, done.stderr) == (1, "")
        assert "GM201" in done.stdout

    def test_fix_hook_changes_the_file(self, root: Path, folder: Path, environment: dict[str, str]) -> None:
        (folder / "model.py").write_text(MODEL)
        done = self.run([*self.hook(root, "graphmend-fix"), "model.py"], folder, environment)
        assert done.returncode == 0, done.stdout + done.stderr
        assert (folder / "model.py").read_text() != MODEL

    @pytest.mark.build
    def test_pre_commit_installs_and_runs_the_hooks(self, root: Path, folder: Path) -> None:
        """The real tool, with an environment of its own that it installs this repository's last commit into."""
        pytest.importorskip("pre_commit")
        if not (root / ".git").exists():
            pytest.skip("pre-commit takes hooks from a git repository, and this is none")
        commit = self.run(["git", "rev-parse", "HEAD"], root, dict(os.environ)).stdout.strip()
        hooks = "[{id: graphmend-check}, {id: graphmend-fix}]"
        (folder / ".pre-commit-config.yaml").write_text(
            f"repos:\n  - {{repo: '{root.as_posix()}', rev: '{commit}', hooks: {hooks}}}\n"
        )
        (folder / "model.py").write_text(MODEL)
        subprocess.run("git init -q . && git add .", shell=True, cwd=folder, check=True)
        environment = {**os.environ, "PRE_COMMIT_HOME": str(folder / "home")}
        command = [sys.executable, "-m", "pre_commit", "run", "--all-files", "--color=never"]
        first = self.run(command, folder, environment)
        if "No matching distribution found" in first.stdout:
            pytest.skip("no package index can be reached")
        assert first.returncode == 1, first.stdout + first.stderr
        assert "GM201 print" in first.stdout
        assert "Found 1 finding in 1 file, 1 file checked." in first.stdout
        assert "files were modified by this hook" in first.stdout
        assert (folder / "model.py").read_text() != MODEL
        second = self.run(command, folder, environment)
        assert second.returncode == 0, second.stdout
        assert second.stdout.count("Passed") == 2

    def test_action_annotates_and_writes_sarif(self, root: Path, folder: Path, environment: dict[str, str]) -> None:
        (folder / "src dir").mkdir()
        (folder / "model.py").write_text(MODEL)
        environment = {**environment, "PATHS": "model.py", "ARGS": "--select GM2", "SARIF": "out.sarif"}
        done = self.run([str(root / "packaging" / "action" / "check")], folder, environment)
        assert done.returncode == 1
        assert done.stdout.startswith("::warning title=graphmend (GM201),file=model.py,line=7")
        assert '"ruleId": "GM201"' in (folder / "out.sarif").read_text()
        assert (
            self.run(
                [str(root / "packaging" / "action" / "check")], folder, environment | {"ARGS": "--nope"}
            ).returncode
            == 2
        )
