"""Answers about real layers, given by a scripted model: what is right passes every gate, and nothing wrong does."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Sequence

import pytest

from graphmend.cli.asking import places
from graphmend.dynamo.report import Report
from graphmend.dynamo.requests import Declared, Request
from graphmend.dynamo.service import Service
from graphmend.model.ask import Answer, ask
from graphmend.model.meaning import Message, Schema
from graphmend.model.subject import extent, function_text
from graphmend.workspace.config import Configurations

from .layers import LAYERS, MOVED, Layer, home

pytestmark = [pytest.mark.torch, pytest.mark.many]
pytest.importorskip("torch")


class Scripted:
    """Gives one answer to every question."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.requests = 0

    def complete(self, messages: Sequence[Message], schema: Schema) -> str:
        self.requests += 1
        return json.dumps({"differs": [], "why": "on all rows"}) + f"\n```python\n{self.code}```\n"


Asks = Callable[[Layer, str, str], tuple[Answer, int]]


@pytest.fixture(scope="module")
def asked() -> Iterator[Asks]:
    """Asks about the first break of a layer; gives what became of the answer, and how many of its findings go."""
    loop, service = asyncio.new_event_loop(), Service()

    def run(layer: Layer, old: str = "", new: str = "") -> tuple[Answer, int]:
        folder = home()
        path = folder and folder / "transformers/models" / layer.path
        if path is None or not path.is_file():
            pytest.skip(f"this transformers has no {layer.path}")
        (file,) = places.read([str(path)], Configurations(isolated=True), None)

        def waiting() -> list[places.Break]:
            return [each for each in file.breaks() if each.asked.finding.function == f"{layer.name}.{layer.method}"]

        found = waiting()
        if not found:
            pytest.skip(f"nothing without a mend is found in {layer.target} of this transformers")
        facts = found[0].asked.facts
        code = layer.answer(function_text(facts.source, extent(facts)))
        assert old in code
        declared = Declared(layer.target, layer.init, layer.inputs)

        async def verify(mended: str) -> Report:
            request = Request(
                str(path),
                names=(layer.target,),
                interpreter=sys.executable,
                mended={str(path): mended},
                confined=True,
                timeout=240.0,
                declared=(declared,),
            )
            return await service.check(request)

        answer = loop.run_until_complete(
            ask(found[0].asked, Scripted(code.replace(old, new) if old else code), "m", file.look, verify, tries=1)
        )
        if answer.fix is None:
            return answer, 0
        file.take(answer.text)
        return answer, len(found) - len(waiting())

    yield lambda layer, old, new: run(layer, old, new)
    loop.run_until_complete(service.close())
    loop.close()


@pytest.mark.parametrize("name", LAYERS)
def test_a_right_answer_mends_a_layer(asked: Asks, name: str) -> None:
    answer, gone = asked(LAYERS[name], "", "")
    assert answer.fix is not None, answer.problem
    assert gone == LAYERS[name].mended
    assert answer.breaks is not None
    assert answer.breaks[1] < answer.breaks[0]


WRONG = [(name, number) for name, layer in LAYERS.items() for number in range(len(layer.wrong))]


@pytest.mark.parametrize(("name", "number"), WRONG, ids=lambda part: str(part))
def test_a_wrong_answer_is_not_offered(asked: Asks, name: str, number: int) -> None:
    answer, _ = asked(LAYERS[name], *LAYERS[name].wrong[number])
    assert answer.fix is None
    assert answer.gates[0][-1].says


def test_a_break_that_moves_to_another_file_is_not_gone(asked: Asks) -> None:
    answer, _ = asked(MOVED, "", "")
    assert answer.fix is None
    assert "as many places as before" in answer.problem
