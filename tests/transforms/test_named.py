"""What is seen to differ after an unsafe mend is among what the mend names: the programs of the shared attack, where it
is there. Those of `attacks/` are judged by `test_fuzz_mends.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.torch
@pytest.mark.many
@pytest.mark.parametrize("part", range(4))
def test_every_difference_is_named(part: int, shared: Path, tmp_path: Path) -> None:
    programs = json.loads(shared.joinpath("truth", "mends-attack", "cases.json").read_text("utf-8"))
    mine = tmp_path / "cases.json"
    mine.write_text(json.dumps(programs[part::4]), "utf-8")
    command = [sys.executable, "-m", "fuzz_mends", "--given", str(mine), "--offers", "0"]
    path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
