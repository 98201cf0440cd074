"""Constructor calls to try: arguments from annotations, from what the constructor does with them, and from their
names; configurations in a small size first, then in a less small one.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch

from ..discover import Target
from ..project import classes as project_classes
from . import configs, from_project, from_settings, parts
from .examples import namespace
from .feedback import frames, origins
from .reading import source_reading
from .reading.shapes import Call, Source, render
from .reading.usage import Use

_WAYS: tuple[dict[str, int], ...] = ({}, {"dim": 8, "heads": 1}, {"dim": 64, "heads": 4, "channels": 4})


Run = Callable[[Any], Any]
"""Runs an object on the inputs that it failed on."""
After = Callable[[BaseException, "Run | None"], Iterator["Making"]]

_VARIADIC = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


class Making:
    """Source text that makes the object to call. `calls` are inputs that the project gives it, `origin` says where;
    `after` gives other ways to try when this one raised.
    """

    def __init__(
        self,
        text: str,
        calls: list[from_project.Inputs] | None = None,
        origin: str = "synthesised",
        after: After = lambda error, run: iter(()),
        *,
        guessed: bool = False,
    ) -> None:
        self.text = text
        self.calls = calls or []
        self.origin = origin
        self.after = after
        self.guessed = guessed
        """Whether the error that led to it did not say so: it is tried after all others."""
        self.asked = False
        """Whether it has the setting that a failed statement asked for."""

    @property
    def key(self) -> tuple[str, str]:
        """What tells one way from another: the same object may be called in full size too."""
        return self.text, repr([(list(map(render, args)), render(kwargs)) for args, kwargs in self.calls])


def makings(target: Target, module: ModuleType) -> Iterator[Making]:
    """Ways to make the object to call: as the project does, in a small size; by what the class shows; as the project
    does, in full size.
    """
    name = target.name.partition(".")[0]
    if target.kind != "class":
        # an object has the sizes that it was made with
        for large in (None,) if target.kind == "object" else (from_project.LARGE, None):
            for calls, path in from_project.calls(target, module, large):
                if calls:
                    yield Making(name, calls, f"as in {path}")
        yield Making(name)
        return
    constructor = _constructor(target.value)
    try:  # that of every module takes anything, for others to refuse it
        is_own = constructor is not torch.nn.Module.__init__
        parameters = list(inspect.signature(constructor).parameters.values())[1:] if is_own else []
    except (TypeError, ValueError):
        parameters = []
    found = source_reading.uses(constructor, target.value, (), of_tensors=False)
    seen = set()
    for making in _each(name, parameters, found, target, module):
        if making.key not in seen:
            seen.add(making.key)
            yield making


def _constructor(value: type) -> Any:
    """The constructor that tells its parameters: one that hands on whatever it gets stands for its base's."""
    for base in value.__mro__:
        found = vars(base).get("__init__")
        code = getattr(found, "__code__", None)
        if code is not None and (code.co_argcount + code.co_kwonlyargcount > 1 or not code.co_flags & _VARIADIC):
            return found
    return value.__init__  # type: ignore[misc]


def _each(
    name: str, parameters: list[inspect.Parameter], found: dict[str, Use], target: Target, module: ModuleType
) -> Iterator[Making]:
    small, *levels = configs.LEVELS

    def making(
        sizes: dict[str, int], level: str, given: dict[str, str], like: Making | None = None, *, guess: bool = False
    ) -> Making:
        def after(error: BaseException, run: Run | None) -> Iterator[Making]:
            yield from _asked_for(made, error, run, module)
            guessed = [p.name for p in parameters if p.name not in given and p.default is p.empty]
            blamed = frames.blamed(error, _constructor(target.value))
            for other in _others(error, guessed, found):
                yield making(sizes, level, {**given, **other}, like)
            for other in _blamed(error, blamed, parameters, guessed, found):
                yield making(sizes, level, {**given, **other}, like, guess=True)

        text = _call(name, parameters, found, target, module, sizes, level, given)
        like = like or Making("")
        made = Making(text, like.calls, like.origin, after, guessed=guess)
        return made

    def of_project(large: int | None) -> Iterator[Making]:
        for suggestion in from_project.suggestions(target, module, parameters, found, large):
            like = Making("", suggestion.calls, f"as in {suggestion.path}")
            yield making({}, small, suggestion.arguments, like)

    yield from of_project(from_project.LARGE)
    yield from of_project(from_project.MEDIUM)
    for settings in from_settings.suggestions(module, parameters, found, from_project.reduced):
        yield making({}, small, settings.arguments, Making("", [], f"as in {settings.path}"))
    for sizes in _WAYS:
        yield making(sizes, small, {})
    wanted = [p.name for p in parameters if p.default is p.empty]
    for each in [n for n in wanted if n in found and found[n].is_sequence and not _OF_LAYERS.search(n)]:
        yield making({}, small, {each: "(4, 4)"})  # sides that no window is larger than
    for parameter in parameters:
        for other in configs.others(parameter, found.get(parameter.name, Use()), target, module):
            yield making({}, small, {parameter.name: other})
    for level in levels:
        yield making({}, level, {})
    yield from of_project(None)


def _asked_for(of: Making, error: BaseException, run: Run | None, module: ModuleType) -> Iterator[Making]:
    """The same call with another value in the place that the failed statement has its value from."""

    def after(error: BaseException, run: Run | None, of: Making) -> Iterator[Making]:
        return _asked_for(of, error, run, module)

    for text in dict.fromkeys(origins.others(of.text, error, namespace(module), run)):
        made = Making(text, of.calls, of.origin)
        made.asked = True
        made.after = lambda error, run, made=made: after(error, run, made)  # type: ignore[misc]
        yield made


_SEVERAL = re.compile(
    r"'int' object is not (iterable|subscriptable)|object of type 'int' has no len|non-iterable int|int' and 'tuple'"
)
_PAIRS = re.compile(r"concatenate tuple \(not \"int\"\)|'int' object is not (iterable|subscriptable)|non-iterable int")
_MULTIPLE = re.compile(r"divisible|multiple of|divide")
_ONE = re.compile(r"'list' and '|and 'list'|'list' object|unhashable type")


def _others(error: BaseException, guessed: list[str], found: dict[str, Use]) -> Iterator[dict[str, str]]:
    """Other values of the arguments that were made up, where an error says that one should be several, or one only."""
    said = str(error)
    numbers = [n for n in guessed if n in found and not found[n].is_sequence]
    sequences = [n for n in guessed if n in found and found[n].is_sequence]
    if _SEVERAL.search(said) is not None:
        yield from ({name: "[16, 16]"} for name in numbers)
    elif _MULTIPLE.search(said) is not None:
        yield from ({name: "32"} for name in numbers)
        yield dict.fromkeys(numbers, "32")
    elif _ONE.search(said) is not None:
        yield from ({name: configs.small_value(name, None, {})} for name in sequences)
        yield {name: configs.small_value(name, None, {}) for name in sequences}
    if _PAIRS.search(said) is not None:
        yield from ({name: "[(16, 16), (16, 16)]"} for name in sequences)
    for name in sequences:
        if not _OF_LAYERS.search(name):
            yield {name: "(3, 64, 64)"}


_OF_LAYERS = re.compile(
    r"kernel|stride|padding|dilation|pool|hidden|channels|planes|layers|blocks|depth|heads|units|dims$"
)
"""Names of several sizes that are no shape of an image."""
_NUMBERS = ("1", "2", "4", "8", "32", "64")
_MOST_BLAMED = 3


def _blamed(
    error: BaseException,
    blamed: list[str],
    parameters: list[inspect.Parameter],
    guessed: list[str],
    found: dict[str, Use],
) -> Iterator[dict[str, str]]:
    """Other values of the parameters that reach the statement that failed: what its check names, then other kinds."""
    for each in frames.compared(error):
        yield from _named_by(each, blamed)
    empty = [p.name for p in parameters if p.default is None or (p.default in ((), [], {}) and p.name not in guessed)]
    wanting = [name for name in blamed if name in empty]
    for name in wanting:
        several = name in found and found[name].is_sequence
        yield {name: _several(name)[0] if several else configs.small_value(name, None, {})}
    for name in [n for n in blamed if n in guessed][:_MOST_BLAMED]:
        use = found.get(name, Use())
        if use.attributes or use.keys or use.calls is not None:
            continue
        if isinstance(error.__cause__ or error, TypeError):
            kinds = _several(name) if use.is_sequence else [configs.small_value(name, None, {}), *_several(name)]
        else:
            kinds = _several(name) if use.is_sequence else [*_NUMBERS]
        yield from ({name: text} for text in kinds)


def _several(name: str) -> list[str]:
    number = configs.small_value(name, None, {})
    return [f"({number}, {number})", f"[{number}, {number}]", "(4, 4)"]


def _named_by(failed: frames.Compared, blamed: list[str]) -> Iterator[dict[str, str]]:
    """`mode in ("sum", "mean")` and `len(sizes) == 3` tell what a parameter must be."""
    for side, other in ((failed.sides[0], failed.values[1]), (failed.sides[1], failed.values[0])):
        name = side.id if isinstance(side, ast.Name) else ""
        if name in blamed and failed.operator is ast.In and isinstance(other, (tuple, list, set, frozenset)):
            yield from ({name: repr(choice)} for choice in sorted(other, key=repr)[:_MOST_BLAMED])
        elif name in blamed and failed.operator is ast.Eq and isinstance(other, (int, str, float)):
            yield {name: repr(other)}
        if isinstance(side, ast.Call) and ast.unparse(side.func) == "len" and isinstance(side.args[0], ast.Name):
            counted = side.args[0].id
            if counted in blamed and failed.operator is ast.Eq and isinstance(other, int) and 0 < other < 8:
                yield {counted: repr((3, 64, 64) if other == 3 else (16,) * other)}


def _call(
    name: str,
    parameters: list[inspect.Parameter],
    found: dict[str, Use],
    target: Target,
    module: ModuleType,
    small: dict[str, int],
    level: str,
    given: dict[str, str],
    around: tuple[type, ...] = (),
) -> str:
    arguments: list[str] = []
    by_position = True
    for parameter in parameters:
        use = found.get(parameter.name, Use())
        text = given.get(parameter.name) or _argument(parameter, use, target, module, small, level, around)
        by_position = by_position and text is not None and parameter.kind is not parameter.KEYWORD_ONLY
        if text is not None:
            bare = by_position or parameter.kind is parameter.VAR_POSITIONAL
            arguments.append(text if bare else f"{parameter.name}={text}")
    named = {parameter.name for parameter in parameters}
    arguments += [f"{n}={text}" for n, text in given.items() if n not in named]
    return f"{name}({', '.join(arguments)})"


def _argument(
    parameter: inspect.Parameter,
    use: Use,
    target: Target,
    module: ModuleType,
    small: dict[str, int],
    level: str,
    around: tuple[type, ...],
) -> str | None:
    if parameter.kind is parameter.VAR_KEYWORD:
        return None
    if parameter.kind is parameter.VAR_POSITIONAL:
        return f"{small.get('dim', 16)}, {small.get('dim', 16)}" if use.is_sequence else None
    if parameter.default is not parameter.empty:
        return None
    text = configs.text_for(parameter, use, target, module, level)
    if text is None and parameter.annotation is parameter.empty:
        text = _part(parameter.name, target, module, small, level, around)
    if text is None:
        made = _structure(parameter.name, parameter.annotation, use, target, module, small)
        text = None if made is None else render(made)
    return text or configs.small_value(parameter.name, parameter.annotation, small)


def _part(
    name: str, target: Target, module: ModuleType, small: dict[str, int], level: str, around: tuple[type, ...]
) -> str | None:
    """A module that is kept under its parameter's name and called: of a class of the file that is named alike.
    `around` are the classes of which it is a part of a part.
    """
    if not parts.is_called(target.value, name):
        return None
    around = (*around, target.value)
    found = parts.class_of(name, target.value, module)
    if found is None or found in around:
        return "nn.Identity()"
    constructor = _constructor(found)
    own = list(inspect.signature(constructor).parameters.values())[1:]
    read = source_reading.uses(constructor, found, (), of_tensors=False)
    return _call(found.__name__, own, read, Target(found.__name__, "class", found), module, small, level, {}, around)


VOCABULARY = 16


def _numbered(words: list[str]) -> Source:
    """A table of words and their numbers, with some more words: `{'<pad>': 0, ...}`."""
    first = ", ".join(f"{word!r}: {number}" for number, word in enumerate(words))
    more = f"{{str(n): n for n in range({len(words)}, {len(words) + VOCABULARY})}}"
    return Source(f"{{{first}, **{more}}}")


def _structure(
    name: str, annotation: Any, use: Use, target: Target | None, module: ModuleType, small: dict[str, int]
) -> Any:
    """What the constructor's own text asks for where it is no number: a mapping, a namespace, a list, a callable."""
    text = annotation if isinstance(annotation, str) else str(annotation)
    if re.search(r"torch\.device\b", text) or "device" in (annotation, name):
        return Source("torch.device('cpu')")
    if re.search(r"torch\.dtype\b", text):
        return Source("torch.float32")
    if isinstance(annotation, type) and annotation in (int, float, str, bool):
        return None
    if use.rank or use.least_rank:  # `vectors.size(1)`: a tensor, such as a table of embeddings
        rank = max(use.rank or 0, use.least_rank)
        return Source("torch.randn(3, 64, 64)" if rank == 3 else f"torch.randn({', '.join(['16'] * rank)})")
    if use.calls is not None:
        return _callable(name, use.calls, target, module)
    if use.choices:
        return use.choices[0]

    def inner(key: str, part: Use) -> Any:
        made = _structure(key, None, part, target, module, small)
        return made if made is not None else Source(configs.small_value(key, None, small))

    wanted = {key: part for key, part in use.keys.items() if key not in use.optional}
    if wanted and use.counted and all(_structure(k, None, u, target, module, small) is None for k, u in wanted.items()):
        return _numbered(list(wanted))
    if wanted:
        return {key: inner(key, part) for key, part in wanted.items()}
    if use.keys:
        return {}
    fields = {n: u for n, u in use.attributes.items() if n not in ("get", "items", "keys", "copy")}
    if fields:
        # what it is handed on to reads more of it, mostly under the same name
        more = project_classes.attributes_of(project_classes.text_of(module), name)
        every = {**{field: Use() for field in more}, **fields}
        return Call("SimpleNamespace", {field: inner(field, part) for field, part in every.items()})
    if use.is_sequence:
        item = Source(configs.small_value(name, None, small))
        return [item] * max(use.items, 2)
    return None


def _callable(name: str, arguments: int, target: Target | None, module: ModuleType) -> Source:
    """A class of the file that takes as many arguments, else a layer by the parameter's name."""
    for found, value in vars(module).items():
        own = isinstance(value, type) and issubclass(value, torch.nn.Module) and value.__module__ == module.__name__
        if own and (target is None or value is not target.value) and _takes(value, arguments):
            return Source(found)
    return Source("nn.ReLU" if "act" in name else "nn.LayerNorm" if "norm" in name else "nn.Identity()")


def _takes(value: type, arguments: int) -> bool:
    try:
        inspect.signature(value).bind(*[None] * arguments)
    except (TypeError, ValueError):
        return False
    return arguments > 0
