"""No hostile answer reaches a run: the gates in front of it end each, and the worker hears nothing of it."""

from __future__ import annotations

import asyncio
import textwrap
from pathlib import Path

from graphmend.cli.asking import places
from graphmend.dynamo.report import Report
from graphmend.model.gatekeeper import Gatekeeper
from graphmend.model.gates.text import Unfit
from graphmend.model.subject import extent, function_text
from graphmend.workspace.config import Configurations

from . import hostile_forms
from .hostile import ANSWERS, MODULE, STATEMENTS


class Asked(AssertionError):
    """The worker was asked to run a text."""


async def never(mended: str) -> Report:
    raise Asked


class Gates:
    """The gates of one function of a file, asked about one answer after the other."""

    def __init__(self, path: Path, text: str, function: str) -> None:
        path.write_text(text, encoding="utf-8")
        (file,) = places.read([str(path)], Configurations(isolated=True), None)
        self.look, self.result = file.look, file.look(file.source)
        self.wanted = [each for each in self.result.findings if each.function == function]
        facts = self.result.facts(self.wanted[0])
        assert facts is not None
        self.facts, self.own = facts, textwrap.dedent(function_text(facts.source, extent(facts)))

    def end(self, answer: str) -> str:
        """The gate that ends an answer; "run" where the worker was asked."""
        keeper = Gatekeeper(self.result, self.wanted, self.facts, self.look, never)
        try:
            asyncio.run(keeper.judge(answer))
        except Unfit:
            return keeper.gates[-1].name
        except Asked:
            return "run"
        raise AssertionError("no answer passes without a run")


def test_no_hostile_answer_is_run(tmp_path: Path) -> None:
    gates = Gates(tmp_path / "block.py", MODULE, "Block.forward")
    lines = gates.own.replace("if mask.sum() > 0:", "if mask is not None:").rstrip().splitlines()
    statements = ["\n".join([*lines[:-1], textwrap.indent(each, "    "), lines[-1]]) for each in STATEMENTS]
    ends = {each: gates.end(each) for each in [*statements, *ANSWERS]}
    assert len(ends) >= 150
    assert set(ends.values()) <= {"form", "reads"}, ends
    assert gates.end("\n".join(lines)) == "run"  # what is honest in them


def test_no_hostile_form_is_run(tmp_path: Path) -> None:
    gates = Gates(tmp_path / "base.py", hostile_forms.MODULE, "Base.forward")
    head, tail = hostile_forms.HEAD, hostile_forms.TAIL
    statements = [head + textwrap.indent(each, "    ") + tail for each in hostile_forms.STATEMENTS.values()]
    ends = {each: gates.end(each) for each in [*statements, *hostile_forms.ANSWERS.values()]}
    assert set(ends.values()) <= {"form", "reads"}, ends
    assert gates.end(head + tail) == "run"
