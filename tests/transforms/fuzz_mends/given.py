"""Programs that somebody wrote, from files, to be judged as those made at random.

In a text file a program is a block below `#: name | inputs`, where inputs are tuples, or one of the names of `INPUTS`.
The text of a block follows the imports of every program. In a JSON file programs are whole: objects with a `name`, a
`text` and `inputs`, which is the text of a list of tuples.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from fuzz_mends.program import HEAD, Program

#: many kinds of tensors; some that ask for gradients; few; tables
INPUTS = {
    "W": "(torch.randn(4),), (-torch.rand(4) - 0.1,), (torch.rand(4) + 0.1,), (torch.tensor([1, 2, 3]),), "
    "(torch.tensor([-1, -2, 0]),), (torch.tensor([True, False]),), (torch.tensor([False, False]),), "
    "(torch.zeros(0),), (torch.tensor(2.0),), (torch.tensor(-2.0),), (torch.randn(3).half(),), "
    "(torch.tensor([float('nan'), 1.0]),), (torch.tensor([float('inf'), 1.0]),), "
    "(torch.tensor([1.0, 2.0], requires_grad=True),), (torch.tensor([-1.0, -2.0], requires_grad=True),), "
    "(torch.randn(3).double(),), (torch.ones(1).expand(4),), ((-torch.ones(1)).expand(4),), (torch.randn(2, 3),), "
    "(torch.ones(2, 2).t(),), (torch.tensor([200, 100], dtype=torch.uint8),)",
    "G": "(torch.tensor([1.0, 2.0], requires_grad=True),), (torch.tensor([-1.0, -2.0], requires_grad=True),), "
    "(torch.tensor([1.0, -2.0]),), (torch.tensor([-1.0, 2.0, -3.0], requires_grad=True),), "
    "(torch.tensor([0.0, 0.0], requires_grad=True),)",
    "P": "(torch.tensor([1.0, 2.0]),), (torch.tensor([-1.0, -2.0]),), (torch.tensor([1.0, -2.0]),)",
    "M2": "(torch.randn(3, 3),), (torch.ones(3, 3),), (-torch.ones(3, 3),), (torch.zeros(3, 3),), "
    "(torch.arange(9).view(3, 3),), (torch.randn(3, 3, requires_grad=True),), (torch.ones(3, 1).expand(3, 3),)",
}


def programs(place: Path) -> list[Program]:
    """The programs of a text file, of those in a folder, or of a JSON file, by their names."""
    found = []
    if place.suffix == ".json":
        listed = json.loads(place.read_text("utf-8"))
        return [Program(one["name"], one["text"], (_rows(one["inputs"]),)) for one in listed]
    for path in sorted(place.glob("*.txt")) if place.is_dir() else [place]:
        for block in re.split(r"(?m)^#: ", path.read_text("utf-8"))[1:]:
            head, text = block.split("\n", 1)
            name, given = (part.strip() for part in head.split(" | ", 1))
            rows = INPUTS.get(given, given)
            found.append(Program(f"{path.stem}/{name}", HEAD + "\n\n" + text.strip("\n") + "\n", (rows,)))
    return found


def _rows(inputs: str) -> str:
    """The tuples of a list as a row of inputs."""
    return inputs.strip().removeprefix("[").removesuffix("]")
