"""Answers written by hand, judged by all gates: what is right mends its case, and nothing wrong is ever offered."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from graphmend.cli.asking import places
from graphmend.dynamo.report import Report
from graphmend.dynamo.requests import Request
from graphmend.dynamo.service import Service
from graphmend.model.gatekeeper import Gatekeeper
from graphmend.model.gates.text import Unfit
from graphmend.workspace.config import Configurations

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

HERE = Path(__file__).resolve().parent
CASES = HERE.parents[2] / "shared" / "truth" / "patterns" / "cases"
LAYERS = HERE / "answers" / "layers.py"


def answers(kind: str) -> list[Any]:
    """All of a kind; a run takes a second, so two of three are left to the tests that make many."""
    paths = sorted((HERE / "answers" / kind).glob("*.py"))
    marks = [[] if number % 3 == 0 else [pytest.mark.many] for number in range(len(paths))]
    return [
        pytest.param(path, marks=mark, id=path.name.removesuffix(".py"))
        for path, mark in zip(paths, marks, strict=True)
    ]


Judge = Callable[[Path], str]


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    """Why an answer is refused, with its gate; empty where it is offered."""
    loop, service = asyncio.new_event_loop(), Service()

    async def judged(answer: Path) -> str:
        name = answer.name.partition(".")[0]
        own = name[0].isupper()  # a class of the layers, and no case
        path = LAYERS if own else CASES / f"{name}.py"
        if not path.is_file():
            pytest.skip(f"{path.name} is not here")
        (file,) = places.read([str(path)], Configurations(isolated=True), None)
        result = file.look(file.source)
        function = f"{name}.forward" if own else "case"
        wanted = [f for f in result.findings if f.function == function and result.facts(f)]
        if not wanted:
            assert not own
            pytest.skip(f"nothing is found in {path.name}")
        facts = result.facts(wanted[0])
        assert facts is not None

        async def verify(mended: str) -> Report:
            text = {str(path): mended}
            names = (name,) if own else ()
            request = Request(
                str(path), names=names, interpreter=sys.executable, mended=text, confined=True, timeout=25.0
            )
            return await service.check(request)

        keeper = Gatekeeper(result, wanted, facts, file.look, verify)
        try:
            await keeper.judge(answer.read_text(encoding="utf-8"))
        except Unfit as error:
            return f"{keeper.gates[-1].name}: {error}"
        return ""

    yield lambda answer: loop.run_until_complete(judged(answer))
    loop.run_until_complete(service.close())
    loop.close()


@pytest.mark.parametrize("answer", answers("good"))
def test_a_right_answer_mends_its_case(judge: Judge, answer: Path) -> None:
    assert judge(answer) == ""


@pytest.mark.parametrize("answer", answers("wrong"))
def test_a_wrong_answer_is_refused(judge: Judge, answer: Path) -> None:
    assert judge(answer) != ""
