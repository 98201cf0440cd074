"""A mend stays where it removes its break, and the end is the same whichever way it is reached."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import pytest

from graphmend.analysis.check import check
from graphmend.analysis.facts.function_facts import FunctionFacts
from graphmend.analysis.finding import Finding
from graphmend.analysis.syntax.source import Source
from graphmend.analysis.syntax.span import Span
from graphmend.transforms import offers, rounds
from graphmend.transforms.fix import Fix, TextEdit
from graphmend.transforms.mend import mend_all
from graphmend.transforms.rewrites.answers import asks, offer

HEAD = "import logging\nimport torch\nlog = logging.getLogger('rounds')\n\n\n@torch.compile\n"
PROGRAMS = {
    "print_under_a_branch": """def case(x: torch.Tensor, steps: int):
    y = x * 1.5
    if y.sum() > 0:
        print(f"step {steps} {y.sum().item():.3f}")
        y = y * 2
    return y
""",
    "print_alone": """def case(x: torch.Tensor):
    if x.sum() > 0:
        print("positive")
    return x
""",
    "kept_and_branched_on": """def case(x: torch.Tensor):
    s = x.sum().item()
    if s > 1:
        x = x * 2
    return x
""",
    "places": """def case(x: torch.Tensor):
    m = x > 0
    i = torch.where(m)[0]
    return x[i].sum()
""",
    "output_everywhere": """def case(x: torch.Tensor):
    print("in", x.shape)
    s = x.sum().item()
    log.info("sum %s", s)
    return x * s
""",
    "not_known": """def case(x: torch.Tensor, f):
    s = x.sum().item()
    return f(s) + x
""",
    "nested": """def case(x: torch.Tensor):
    if x.sum() > 0:
        if x.max() > 1:
            print("large")
            x = x - 1
        log.warning("positive %s", x.sum())
    else:
        x = x + 1
    return x
""",
}


@pytest.mark.parametrize("body", PROGRAMS.values(), ids=PROGRAMS)
def test_safe_mends_and_then_the_rest_end_where_both_do(body: str) -> None:
    safe = mend_all(Source(HEAD + body), unsafe=False)
    after = mend_all(safe.source, unsafe=True).source.text
    assert after == mend_all(Source(HEAD + body), unsafe=True).source.text


@pytest.mark.parametrize("body", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("unsafe", [False, True])
def test_each_mend_removes_a_break(body: str, unsafe: bool) -> None:
    before = Source(HEAD + body)
    mended = mend_all(before, unsafe=unsafe)
    removed = len(check(before).findings) - len(check(mended.source).findings)
    assert removed > 0 or not mended.changed
    assert len(mended.left) == len(check(mended.source).findings)


def test_only_what_is_wanted_is_mended() -> None:
    body = "def case(x: torch.Tensor):\n    print('a')\n    print('b')\n    return x\n"

    def second(source: Source, findings: Sequence[Finding]) -> list[Finding]:
        return [f for f in findings if "'b'" in source.lines.line(f.span.line - 1)]

    after = mend_all(Source(HEAD + body), unsafe=False, wanted=second).source.text
    assert "    print('a')\n" in after
    assert "emit(print, 'b')" in after


def test_mends_that_flip_between_two_texts_end(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "def case(x: torch.Tensor):\n    if x.sum() > 0:\n        x = x * 1\n    return x\n"
    flips = 0

    @asks()
    def flip(_: Finding, facts: FunctionFacts) -> Fix:
        nonlocal flips
        flips += 1
        assert flips < 200
        factor = next(n for n in ast.walk(facts.statement) if isinstance(n, ast.Constant) and n.value in (1, 2))
        span = Span(factor.lineno, factor.col_offset, factor.lineno, factor.col_offset + 1)
        edit = TextEdit(span, "2" if factor.value == 1 else "1")
        return offer("flip", "flip", facts, lambda: [edit], narrows=True)

    monkeypatch.setattr(offers, "rewrites_for", lambda _: [flip])
    monkeypatch.setattr(rounds, "_MOST", 20)
    mend_all(Source(HEAD + body), unsafe=False)
    assert flips
