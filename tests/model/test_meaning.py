"""Answers become values of the question's type, however a model writes them, or are refused with what was expected."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmend.model.meaning import NotOfType, by, convert, explained, means, schema
from graphmend.model.question import Impossible, Replacement, without_break

CODE = "def f(x):\n    return x + 1\n"
GOOD = {
    "json": json.dumps({"source": CODE, "differs": [], "why": "w"}),
    "json in a fence": "```json\n" + json.dumps({"source": CODE, "differs": [], "why": "w"}) + "\n```",
    "code in a fence": '{"differs": [], "why": "w"}\n```python\n' + CODE + "```\n",
    "fences for both": '```json\n{"differs": [], "why": "w"}\n```\n\n```python\n' + CODE + "```",
    "constructor": f"Replacement(source={CODE!r}, differs=(), why='w')",
    "after a thought": '<think>{"why": 1}</think>' + json.dumps({"source": CODE, "differs": [], "why": "w"}),
    "prose around": "Here:\n" + json.dumps({"source": CODE, "differs": [], "why": "w"}) + "\nDone.",
}


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD)
def test_an_answer_is_read(text: str) -> None:
    assert without_break.convert(text) == Replacement(CODE, (), "w")


def test_a_docstring_may_hold_blocks_of_its_own() -> None:
    code = 'def f(x):\n    """Adds one.\n\n    ```python\n    >>> f(1)\n    ```\n    """\n    return x + 1\n'
    given = '{"differs": [], "why": "w"}\n```python\n' + code + "```\nDone.\n"
    assert without_break.convert(given) == Replacement(code, (), "w")


def test_the_other_type_of_the_union_is_read() -> None:
    assert without_break.convert('{"reason": "no"}') == Impossible("no")
    assert without_break.convert("Impossible(reason='no')") == Impossible("no")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no",
        "{}",
        "[]",
        "null",
        '{"source": 1, "differs": [], "why": ""}',
        '{"source": "", "differs": "no", "why": ""}',
        "```python\n" + CODE + "```",
        "Replacement(source=open('x').read(), differs=(), why='')",
        "{" * 5000,
        "Other(reason='x')",
        '{"reason": "x", "more": 1}',
    ],
)
def test_what_does_not_fit_is_refused_with_words(text: str) -> None:
    with pytest.raises(NotOfType) as refused:
        without_break.convert(text)
    assert str(refused.value)


@given(st.text(max_size=200))
def test_any_text_is_a_value_or_refused(text: str) -> None:
    try:
        found = without_break.convert(text)
    except NotOfType:
        return
    assert isinstance(found, Replacement | Impossible)


@dataclasses.dataclass(frozen=True)
class Point:
    """A place."""

    x: float = means("to the right")
    tags: tuple[str, ...] = means("words")


@given(st.builds(Point, st.floats(allow_nan=False), st.lists(st.text()).map(tuple)))
def test_a_value_survives_its_text(point: Point) -> None:
    assert convert(json.dumps(dataclasses.asdict(point)), Point) == point


def test_types_are_told_as_schema_and_in_words() -> None:
    @by
    def nearest(points: list[Point]) -> Point | None:
        """The nearest point."""
        raise NotImplementedError

    assert nearest.action == "The nearest point."
    assert nearest.schema["anyOf"][0]["properties"]["x"] == {"type": "number", "description": "to the right"}
    assert schema(dict[str, int]) == {"type": "object", "additionalProperties": {"type": "integer"}}
    assert "x (float): to the right" in explained(nearest.returns)
