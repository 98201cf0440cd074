"""Functions under test, written as bodies below comments that name them."""

from __future__ import annotations

import re
import textwrap
from typing import Any

HEAD = """\
import logging

import torch
import torch.nn.functional as F

logger = logging.getLogger("judged")
logger.propagate = False
logger.setLevel("INFO")


@torch.compile
"""


def bodies(text: str) -> dict[str, str]:
    """Bodies by their names."""
    parts = re.split(r"^# (\w+)\n", text, flags=re.MULTILINE)[1:]
    return {name: textwrap.indent(body.strip("\n"), "    ") for name, body in zip(parts[::2], parts[1::2], strict=True)}


def function(body: str, parameters: str = "x", inputs: Any = None) -> str:
    """A module whose compiled `case` has this body; `inputs` is the text of its example inputs."""
    examples = f"\n\ndef example_inputs():\n    return {inputs}\n" if inputs else ""
    return f"{HEAD}def case({parameters}):\n{body}\n{examples}"
