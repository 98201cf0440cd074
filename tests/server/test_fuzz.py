"""Random edits over the wire: what the server shows is what a fresh look at the same text would give.

GRAPHMEND_FUZZ sets how many edits are made, a sixth of them in each encoding; `make fuzz` makes many.
"""

from __future__ import annotations

import ast
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Start
from .editor import Editor, capabilities

pytestmark = pytest.mark.asyncio

EDITS = max(60, int(os.environ.get("GRAPHMEND_FUZZ", "0")) // 6)
EDITS_OF_ONE_FILE = 20

PIECES = [
    *"abxyz01 \t\n\r():.,#'\"\\=<>@",
    "\r\n",
    "\f",
    "\u2028",
    "é",
    "\U0001d4b3",
    "e\u0301",
    "if x.sum() > 0:\n        x = x + 1\n    ",
    "print(x)\n    ",
    "def g(y):\n    return y.item()\n\n\n",
    "import torch\n",
]


def edit(editor: Editor, uri: str, chance: random.Random) -> None:
    """One edit at a random place: a keystroke, a paste, a deletion, or an undo of nearly everything."""
    text = editor.texts[uri]
    begin = chance.randrange(len(text) + 1)
    end = min(len(text), begin + chance.choice([0, 0, 0, 0, 1, 1, 5, 40]))
    editor.edit(uri, begin, end, "".join(chance.choices(PIECES, k=chance.choice([0, 1, 1, 1, 2, 4]))))


def parses(text: str) -> bool:
    try:
        ast.parse(text.removeprefix("\ufeff"))
    except (SyntaxError, ValueError):
        return False
    return True


def texts(module: Path, real_files: list[Path], chance: random.Random) -> Iterator[str]:
    """The module with odd characters, in which much happens in little text, and every fifth time a model file."""
    while True:
        yield from [module.read_text("utf-8")] * 4
        yield chance.choice(real_files or [module]).read_text("utf-8")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
async def test_edits_show_what_a_fresh_look_shows(
    start: Start, module: Path, real_files_if_any: list[Path], encoding: str
) -> None:
    editor = await start(client=capabilities(pull=True, encodings=(encoding,)))
    chance = random.Random(f"{encoding} {EDITS}")
    originals = texts(module, real_files_if_any, chance)
    twin = module.with_name("twin.py")
    uri, original = editor.open(module), ""
    for number in range(EDITS):
        if number % EDITS_OF_ONE_FILE == 0:
            original = next(originals)
        if number % 4 == 0:  # to Python, by an edit too
            editor.edit(uri, 0, len(editor.texts[uri]), original)
        edit(editor, uri, chance)
        edited = await editor.pull(uri)
        if not parses(editor.texts[uri]):
            continue
        other = editor.open(twin, editor.texts[uri])
        fresh = await editor.pull(other)
        editor.close(other)
        seen, expected = ([(d.range, d.code, d.message) for d in report.items] for report in (edited, fresh))
        assert seen == expected, editor.texts[uri]
    assert not [line for line in editor.logged if "failed" in line]
    assert editor.shown == []
