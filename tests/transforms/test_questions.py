"""Each rewrite asks what it declares, and nothing else: over all examples, whether they are mended or refused."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from asking_examples import EXAMPLES
from bodies import bodies, function

from graphmend.analysis.check import check
from graphmend.analysis.finding import Finding
from graphmend.analysis.syntax.source import Source
from graphmend.transforms.catalogue import rewrites_for
from graphmend.transforms.document import documented
from graphmend.transforms.fix import Fix, Refusal, Unmendable
from graphmend.transforms.mend import mend_all
from graphmend.transforms.questions import QUESTIONS, Question, UndeclaredQuestionError, answers, asking, kept
from graphmend.transforms.rewrites.answers import asks, offer

IMPORTS = "import copy, functools, gc, importlib, itertools, math, numpy, os, random, time, warnings\n"


def examples() -> Iterator[str]:
    for path in sorted(Path(__file__).with_name("judged").glob("*.txt")):
        for body in bodies(path.read_text("utf-8")).values():
            yield IMPORTS + function(body, "x, n" if path.stem == "indices" else "x", "[(torch.rand(4, 4),)]")
    yield from EXAMPLES
    for path in sorted(Path(__file__).parent.glob("programs.txt")):
        for program in re.split(r"^# --- \w+\n", path.read_text("utf-8"), flags=re.MULTILINE)[1:]:
            yield f"import torch\nimport torch.nn as nn\n\n\n{program}"


def asked() -> dict[str, set[Question]]:
    """What the rewrites ask about the examples, as they stand and mended in part; an undeclared question raises."""
    found: dict[str, set[Question]] = defaultdict(set)
    for text in examples():
        mended = mend_all(Source(text), unsafe=True)
        for state in {text, mended.source.text, *(one.text for one in mended.applied)}:
            result = check(Source(state))
            for finding in result.findings:
                facts = result.facts(finding)
                for rewrite in rewrites_for(finding) if facts is not None else ():
                    with asking(rewrite.asks) as now:
                        answer = rewrite.decide(finding, facts)
                        if isinstance(answer, Fix):
                            _edited(answer)
                    found[rewrite.name] |= now.asked
    return found


def _edited(fix: Fix) -> None:
    with suppress(Unmendable):
        fix.edits()


@pytest.mark.many
def test_every_declared_question_is_asked() -> None:
    found = asked()
    assert {name: found[name] for name in documented()} == {name: set(each.asks) for name, each in documented().items()}


def test_questions_are_declared_in_one_order() -> None:
    for each in documented().values():
        assert list(each.asks) == [question for question in QUESTIONS if question in each.asks]


def test_an_undeclared_question_is_a_refusal() -> None:
    result = check(Source("import torch\n@torch.compile\ndef f(x):\n    return x if x.any() else -x\n"))
    (finding,) = result.findings
    facts = result.facts(finding)

    @answers("memory")
    def shared(node: ast.AST) -> bool:
        return True

    @answers("shapes")
    def shaped(node: ast.AST) -> bool:
        return shared(node)

    @kept
    def both(node: ast.AST) -> bool:
        return shaped(node) and shared(node)

    def decide(finding: Finding, facts: object) -> Fix:
        both(facts.node)
        return offer("decide", "", facts, list)

    assert isinstance(asks("memory", "shapes")(decide)(finding, facts), Fix)
    for declared in (("memory",), ("shapes",)):  # kept answers ask again
        refused = asks(*declared)(decide)(finding, facts)
        assert isinstance(refused, Refusal)
        assert "does not declare" in refused.reason

    def late(finding: Finding, facts: object) -> Fix:
        return offer("late", "", facts, lambda: [both(facts.node)][1:])

    fix = asks()(late)(finding, facts)
    with pytest.raises(Unmendable, match="does not declare"):
        fix.edits()


def test_questions_of_an_answer_are_its_own() -> None:
    @answers("memory")
    def inner() -> None: ...

    @answers("shapes")
    def outer() -> None:
        inner()

    with asking(("shapes",)) as now:
        outer()
        assert now.asked == {"shapes"}
        with pytest.raises(UndeclaredQuestionError):
            inner()
    inner()  # nobody asks
