"""Meaning types: a typed function without a body is a question, and its return type is the type of the answer.

After Meaning-Typed Programming (arXiv 2405.08965): what the types, their fields' meanings and the docstring say is all
that the prompt is made of, and an answer is converted into the return type or asked for again. Knows nothing of graph
breaks, and of no network: whoever answers is a `Model`.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Literal, NamedTuple, ParamSpec, Protocol, TypeVar, Union, get_args, get_origin

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

Schema = dict[str, Any]
_MEANING = "means"
_CODE = "code"
_DEEPEST = 20


class NotOfType(Exception):
    """An answer cannot be converted; the message says what was expected, for the model to read."""


class Message(NamedTuple):
    role: Literal["system", "user", "assistant"]
    text: str


class Model(Protocol):
    """Who answers: the messages of one conversation in, the text of the answer out."""

    @property
    def requests(self) -> int:
        """How many were sent so far."""
        ...

    def complete(self, messages: Sequence[Message], schema: Schema) -> str: ...


def means(meaning: str, *, code: bool = False) -> Any:
    """A field of an answer's dataclass, with what it stands for; `code` fields may come as a fenced block."""
    return dataclasses.field(metadata={_MEANING: meaning, _CODE: code})


@dataclasses.dataclass(frozen=True)
class Question(Generic[P, R]):
    """A typed function whose body is a model. `ask` gives the question's parts; conversion is `convert`."""

    function: Callable[P, R]
    returns: Any

    @property
    def action(self) -> str:
        """What is asked: the docstring."""
        return inspect.getdoc(self.function) or ""

    @property
    def schema(self) -> Schema:
        return schema(self.returns)

    def inputs(self, *args: P.args, **kwargs: P.kwargs) -> Mapping[str, Any]:
        """The arguments by name."""
        bound = inspect.signature(self.function).bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.arguments

    def convert(self, text: str) -> R:
        """The answer as a value of the return type; raises `NotOfType`."""
        found: R = convert(text, self.returns)
        return found


def by(function: Callable[P, R]) -> Question[P, R]:
    """Marks a typed function without a body: the model is its body."""
    return Question(function, typing.get_type_hints(function)["return"])


# types as text


def schema(of: Any) -> Schema:
    """The JSON schema of a type: primitives, literals, tuples, lists, mappings, unions and dataclasses of them."""
    if of in (str, int, float, bool):
        return {"type": {str: "string", int: "integer", float: "number", bool: "boolean"}[of]}
    if of is type(None):
        return {"type": "null"}
    if dataclasses.is_dataclass(of) and isinstance(of, type):
        hints = typing.get_type_hints(of)
        properties = {f.name: {**schema(hints[f.name]), **_description(f)} for f in dataclasses.fields(of)}
        return {
            "type": "object",
            "title": of.__name__,
            "description": inspect.getdoc(of) or "",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
    origin, arguments = get_origin(of), get_args(of)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema(option) for option in arguments]}
    if origin in (tuple, list) and arguments:
        return {"type": "array", "items": schema(arguments[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema(arguments[1])}
    raise TypeError(f"{of} has no schema")


def _description(field: dataclasses.Field[Any]) -> Schema:
    meaning = field.metadata.get(_MEANING)
    return {} if meaning is None else {"description": meaning}


def explained(of: Any) -> str:
    """Each dataclass that a type is made of, as a line for itself and one for each field."""
    lines: list[str] = []
    for option in dict.fromkeys(_classes(of)):
        lines.append(f"{option.__name__}: {inspect.getdoc(option)}")
        hints = typing.get_type_hints(option)
        for f in dataclasses.fields(option):
            lines.append(f"  {f.name} ({_name(hints[f.name])}): {f.metadata.get(_MEANING, '')}".rstrip(": "))
    return "\n".join(lines)


def _classes(of: Any) -> list[Any]:
    if dataclasses.is_dataclass(of):
        inner = [c for hint in typing.get_type_hints(of).values() for c in _classes(hint)]
        return [of, *inner]
    return [c for argument in get_args(of) for c in _classes(argument)]


def _name(of: Any) -> str:
    return of.__name__ if isinstance(of, type) and not get_args(of) else str(of).replace("typing.", "")


# answers as values


_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)
_FENCE = re.compile(
    r"^(?P<indent>[ \t]*)```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^(?P=indent)```[ \t]*$", re.DOTALL | re.MULTILINE
)
"""A block ends where it began: a docstring within may hold blocks of its own, further in."""
_LOOSE_FENCE = re.compile(r"```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)


def convert(text: str, of: Any) -> Any:
    """A model's text as a value of a type; raises `NotOfType`.

    Read are: JSON, alone or in a fence; JSON without the one field that is code, and that field as a fenced block of
    Python; and a constructor as Python writes it, `Replacement(source="...", ...)`. What stands around is passed over.
    """
    text = _THOUGHT.sub("", text).strip()
    if not text:
        raise NotOfType("the answer is empty")
    fence = _FENCE if _FENCE.search(text) else _LOOSE_FENCE
    fences = [(m["language"].lower(), m["text"]) for m in fence.finditer(text)]
    code = next((body for language, body in fences if language in ("python", "py")), None)
    problem = NotOfType(f"the answer holds no value of the type {_name(of)}")
    for candidate in _candidates(text, fence.sub("", text), fences):
        try:
            return _value(_with_code(candidate, code, of), of)
        except NotOfType as error:
            problem = error
    raise problem


def _candidates(text: str, outside: str, fences: Sequence[tuple[str, str]]) -> list[Any]:
    """The plain values that a text may mean, the likeliest first; `outside` is what stands around its fences."""
    found: list[Any] = []
    for part in (text, *(body for language, body in fences if language != "python"), outside, *_objects(outside)):
        for read in (_json, _constructed):
            value = read(part.strip())
            if value is not None and value not in found:
                found.append(value)
    return found


def _json(text: str) -> Any:
    if not text.startswith(("{", "[", '"')):
        return None
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def _objects(text: str) -> list[str]:
    """The outermost brace-balanced part of a text."""
    start, end = text.find("{"), text.rfind("}")
    return [text[start : end + 1]] if 0 <= start < end else []


def _constructed(text: str) -> Any:
    """`Name(field=literal, ...)` as a mapping with the class under an empty key; nothing of it is evaluated."""
    try:
        tree = ast.parse(text, mode="eval").body
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and not tree.args:
            return {"": tree.func.id, **{k.arg: ast.literal_eval(k.value) for k in tree.keywords if k.arg}}
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        pass
    return None


def _with_code(value: Any, code: str | None, of: Any) -> Any:
    """The value with a fenced block for the code field that it lacks, where some class of the type has one."""
    if code is None or not isinstance(value, dict):
        return value
    for option in _classes(of):
        for field in dataclasses.fields(option):
            others = {f.name for f in dataclasses.fields(option)} - {field.name}
            if field.metadata.get(_CODE) and not value.get(field.name) and others <= set(value):
                return {**value, field.name: code}
    return value


def _value(value: Any, of: Any, depth: int = 0) -> Any:
    if depth > _DEEPEST:
        raise NotOfType("the answer is nested too deeply")
    origin, arguments = get_origin(of), get_args(of)
    if origin in (Union, types.UnionType):
        return _one_of(value, arguments, depth)
    if dataclasses.is_dataclass(of) and isinstance(of, type):
        return _instance(value, of, depth)
    if origin is Literal and value in arguments:
        return value
    if origin in (tuple, list) and isinstance(value, (list, tuple)):
        return origin(_value(item, arguments[0], depth + 1) for item in value)
    if origin is dict and isinstance(value, dict):
        return {str(k): _value(v, arguments[1], depth + 1) for k, v in value.items()}
    if of is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if of in (str, int, float, bool, type(None)) and type(value) is of:
        return value
    raise NotOfType(f"expected {_name(of)}, got {type(value).__name__}")


def _one_of(value: Any, options: Sequence[Any], depth: int) -> Any:
    problems: list[str] = []
    for option in options:
        try:
            return _value(value, option, depth + 1)
        except NotOfType as error:
            problems.append(str(error))
    raise NotOfType("; or ".join(dict.fromkeys(problems)))


def _instance(value: Any, of: type, depth: int) -> Any:
    if not isinstance(value, dict):
        raise NotOfType(f"expected an object {of.__name__}, got {type(value).__name__}")
    given = {key: item for key, item in value.items() if key}
    named = value.get("") or next((given.pop(k) for k in ("type", "title") if given.get(k) == of.__name__), None)
    if named is not None and named != of.__name__:
        raise NotOfType(f"expected {of.__name__}, got {named}")
    hints = typing.get_type_hints(of)
    missing, unknown = sorted(set(hints) - set(given)), sorted(set(given) - set(hints))
    if missing or unknown:
        words = [f"{of.__name__} lacks {', '.join(missing)}"] if missing else []
        words += [f"{of.__name__} has no {', '.join(unknown)}"] if unknown else []
        raise NotOfType(" and ".join(words))
    return of(**{name: _value(given[name], hint, depth + 1) for name, hint in hints.items()})
