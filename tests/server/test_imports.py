"""What the server has loaded when it answers `initialize`: no more than it takes to answer."""

from __future__ import annotations

import subprocess
import sys

LOADED = "import sys, graphmend.server.main; print(*sys.modules)"


def test_rules_rewrites_and_checks_are_loaded_when_they_are_needed() -> None:
    run = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    late = ("analysis", "transforms", "dynamo", "workspace", "cli", "model", "assistant")
    of_those = {name for name in loaded if name.startswith(tuple(f"graphmend.{room}." for room in late))}
    data = ("graphmend.analysis.finding", "graphmend.analysis.settings", "graphmend.analysis.syntax")
    assert not {name for name in of_those if not name.startswith(data)}
    assert not loaded & {"torch", "libcst", "pathspec", "numpy"}
