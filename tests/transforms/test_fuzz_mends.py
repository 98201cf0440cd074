"""Programs made at random, and some that go for what a rewrite may take for granted: after safe mends they answer as
before, to the bit, and after others as these say.

`make fuzz-mends` looks at many more of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz_mends.program import generate

PROGRAMS = 50
HERE = Path(__file__).parent


def test_a_seed_makes_one_program() -> None:
    made = [generate(f"0:{number}") for number in range(20)]
    assert made == [generate(f"0:{number}") for number in range(20)]
    assert len({program.text for program in made}) == 20


@pytest.mark.torch
@pytest.mark.many
@pytest.mark.parametrize(
    "options",
    [
        ("--programs", str(PROGRAMS), "--small", "1", "--at-most", "10"),
        ("--given", str(HERE / "attacks")),
        ("--given", str(HERE / "attacks" / "written.txt"), "--offers", "99"),
        ("--given", str(HERE / "attacks" / "branch_forms.txt"), "--offers", "99"),
    ],
    ids=["random", "given", "each", "each form"],
)
def test_no_mend_is_wrong(options: tuple[str, ...]) -> None:
    """In a process of its own: the judge forks, which one that has asked for gradients can't do."""
    path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "fuzz_mends", *options]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    assert done.returncode == 0, done.stdout
