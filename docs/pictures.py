"""Makes the pictures of the documentation from real runs of the command: `python docs/pictures.py`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

DOCS = Path(__file__).resolve().parent
_FONTS = re.compile(r"@font-face\s*\{.*?\}", re.DOTALL)

EXAMPLE = """\
import torch


@torch.compile
def step(x: torch.Tensor, limit: float):
    size = x.norm()
    print("norm", size)
    if size > limit:
        x = x * (limit / size)
    return x
"""


def picture(shown: str, arguments: list[str], text: str) -> str:
    """A terminal as SVG, with what the command says about a text. It loads no fonts."""
    command = [sys.executable, "-m", "graphmend", "check", "--isolated", "-", *arguments]
    environment = {"FORCE_COLOR": "1", "PATH": "", "COLUMNS": "110"}
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 1:
        raise SystemExit(f"{command} ended with {done.returncode}: {done.stderr}")
    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=110, file=nowhere)
        console.print(Text(f"$ {shown}\n"), Text.from_ansi(done.stdout), sep="\n")
    svg = console.export_svg(title="graphmend", unique_id="graphmend")
    return _FONTS.sub("", svg)


def main() -> None:
    shown = "graphmend check step.py"
    (DOCS / "check.svg").write_text(picture(shown, ["--stdin-filename", "step.py"], EXAMPLE), "utf-8")


if __name__ == "__main__":
    main()
