"""Small whole programs of kinds that people write, in two or three spellings each: mended they do not break, and give,
raise and leave behind what they did.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from judge import close, mend_text, nested, run, torch

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"
_PARTS = re.split(r"^# --- (\w+)\n", Path(__file__).with_name("programs.txt").read_text("utf-8"), flags=re.MULTILINE)[
    1:
]
PROGRAMS = dict(zip(_PARTS[::2], _PARTS[1::2], strict=True))


def outcome(text: str, number: int, *, compiled: bool = False) -> tuple[Any, ...]:
    """What a call gives or raises, and the state that it leaves in its arguments."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    case = nested(text)
    arguments = case.module.example_inputs()[number]
    answer = run(torch.compile(case, backend="aot_eager") if compiled else case, arguments)
    if answer[0] == "raised" and compiled:
        return answer[:1]
    left = [a.state_dict() if isinstance(a, torch.nn.Module) else a for a in arguments]
    kept = [[(k, v.double().tolist()) for k, v in s.items()] for s in left if isinstance(s, dict)]
    kept += [v.double().tolist() for v in left if isinstance(v, torch.Tensor)]
    return (*answer, kept)


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_mended(name: str) -> None:
    text = HEAD + PROGRAMS[name]
    after = mend_text(text).source.text
    assert after != text
    for number in range(len(nested(text).module.example_inputs())):
        wanted = outcome(text, number)
        assert close(outcome(after, number), wanted), after
        answer = outcome(after, number, compiled=True)
        assert close(answer, wanted[:1] if wanted[0] == "raised" else wanted), after


@pytest.mark.many
@pytest.mark.parametrize("name", PROGRAMS)
def test_mended_once_is_mended_for_good(name: str) -> None:
    after = mend_text(HEAD + PROGRAMS[name]).source.text
    assert mend_text(after).source.text == after
