"""Random edits of real files: after each, what is known is what a fresh check of the same text finds.

GRAPHMEND_FUZZ sets how many edits are made, half of them here and half over the wire; `make fuzz` makes many.
"""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

from graphmend.analysis.check import check
from graphmend.analysis.finding import Finding
from graphmend.analysis.findings import suppressions
from graphmend.analysis.incremental.document import IncrementalAnalysis
from graphmend.analysis.settings import Settings
from graphmend.analysis.syntax.source import Source

EDITS = max(60, int(os.environ.get("GRAPHMEND_FUZZ", "0")) // 2)
EDITS_OF_ONE_FILE = 30

STATEMENTS = [
    "x = x + 1",
    "print(hidden_states)",
    "if hidden_states.sum() > 0:\n{}    hidden_states = -hidden_states",
    "self.flag = True",
    "return hidden_states",
    "mask = attention_mask.item()",
    "y = self.forward(x)",
    "def g(z):\n{}    return z.item()\n{}y = g(x)",
    "z = lambda q: q.item()",
    "x = 1  # graphmend: ignore[GM201]",
    "with torch.no_grad():\n{}    x = x.item()",
    "raise ValueError(x)",
    "@torch.compile",
    "class B:",
    '"""',
    "try:\n{}    x = x.item()\n{}except ValueError:\n{}    pass",
]
KEYS = [*"abx =\n().[]:'#\"\\,\t", "\r\n", "\f", "é", "\U0001d4b3", "    "]


def edited(text: str, chance: random.Random) -> str:
    """A text after a statement was put in, lines were taken out or repeated, or a key was pressed."""
    lines = text.split("\n")
    line, kind = chance.randrange(len(lines)), chance.random()
    if kind < 0.5:
        indent = re.match(r"[ \t]*", lines[line])
        assert indent is not None
        before = indent[0] if chance.random() < 0.85 else indent[0][4:]
        return "\n".join([*lines[:line], before + chance.choice(STATEMENTS).replace("{}", before), *lines[line:]])
    if kind < 0.6:
        return "\n".join([*lines[:line], *lines[line + chance.choice([1, 1, 2, 5]) :]])
    if kind < 0.7:
        return "\n".join([*lines[:line], chance.choice(lines), *lines[line:]])
    place = chance.randrange(len(text) + 1)
    return text[:place] + chance.choice(KEYS) + text[place + chance.choice([0, 0, 0, 1, 3]) :]


def facts(findings: tuple[Finding, ...]) -> list[tuple[object, ...]]:
    """All of the findings but the words of their evidence, which may lag."""
    return [
        (f.code, f.span, f.function, f.region, f.certainty, f.effect, f.key, f.related, f.message) for f in findings
    ]


def test_edits_of_real_files_find_what_a_fresh_check_finds(real_files: list[Path]) -> None:
    chance, settings = random.Random(EDITS), Settings()
    for _ in range(0, EDITS, EDITS_OF_ONE_FILE):
        path = chance.choice(real_files)
        text = good = path.read_text("utf-8")
        document = IncrementalAnalysis("net.py")
        document.update(text)
        for _ in range(EDITS_OF_ONE_FILE):
            text = edited(text, chance)
            update, source = document.update(text), Source(text, "net.py")
            if source.tree is not None:
                assert not update.broken, path
                seen = suppressions.take_back(update.comments, "net.py", update.findings, settings)
                assert facts(seen) == facts(suppressions.apply(source, check(source).findings, settings)), path
                good = text
            elif chance.random() < 0.6:  # taken back soon, as most slips are
                text = good
                document.update(text)
