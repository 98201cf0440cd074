"""Constructor arguments and inputs as the project itself gives them, as source text, in a size that runs in no time."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import torch

from ..discover import Target
from ..project import classes, outputs, sites, values
from ..project.values import UNKNOWN, Class, External, Instance, Layer, Output, is_named_tuple
from . import configs
from .reading.shapes import BATCH, LARGEST, Call, Source, Tensor, render
from .reading.usage import Use
from .variation import variants

LARGE, MEDIUM = 64, 256
"""Sizes up to this one stay as they are: at first, and where that leaves too few factors (a width for its heads)."""
HUGE = 1 << 10
"""Odd sizes up to this one stay as they are."""
ENOUGH = 1 << 14
"""Elements of an input that is not cut."""
MOST = 3
"""Ways to make an object that are taken over from a project."""

Inputs = tuple[list[Any], dict[str, Any]]
"""Values to try, by position and by name; UNKNOWN where the project's code does not tell."""


def outputs_unknown(calls: list[Inputs]) -> list[Inputs]:
    """Inputs with what modules give unknown."""
    return [outputs.filled(each, lambda _: UNKNOWN) if outputs.holds(each) else each for each in calls]


class Suggestion:
    """How the project makes an object of a class: `arguments` as source text by parameter, its calls as values."""

    def __init__(self, arguments: dict[str, str], calls: list[Inputs], path: str) -> None:
        self.arguments = arguments
        self.calls = calls
        self.path = path


def halved(number: int, large: int = LARGE) -> int:
    """A smaller size in place of a large one: without factors of two, so that most quotients stay whole. Where none are
    left, what is far too large is about halved all the same, such as a vocabulary of 50257.
    """
    while number > large and (number % 2 == 0 or number > HUGE):
        number = (number + 1) // 2
    return number


def reduced(number: int) -> int:
    """A size as it is at first."""
    return halved(number, LARGE)


def _same(number: int) -> int:
    return number


def suggestions(
    target: Target, module: ModuleType, parameters: list[inspect.Parameter], found: dict[str, Use], large: int | None
) -> Iterator[Suggestion]:
    """What the project's files show of a class, likeliest first. Sizes above `large`, if any, are made smaller."""
    path = getattr(module, "__file__", None)
    if path is None or target.kind != "class":
        return
    source = Writer(module, shallow=large is not None)
    resize = _same if large is None else lambda number: halved(number, large)
    seen: set[str] = set()
    variants.seed(0)  # the same text each time
    for site in sites.sites(path, target.value.__name__, resize):
        arguments = source.arguments(site.made, parameters, found)
        if repr(arguments) not in seen and len(seen) < MOST:
            seen.add(repr(arguments))
            method = target.method or ""
            yield Suggestion(arguments, source.all_inputs(site.calls, method), site.path)


def calls(target: Target, module: ModuleType, large: int | None) -> Iterator[tuple[list[Inputs], str]]:
    """What the project's files call a function or an object of a module with, and the file that does. Sizes above
    `large`, if any, are made smaller.
    """
    path = getattr(module, "__file__", None)
    name = _called_as(target)
    if path is None or name is None:
        return
    source = Writer(module, shallow=False)
    resize = _same if large is None else lambda number: halved(number, large)
    variants.seed(0)  # the same text each time
    if target.kind == "function":
        for call, origin in sites.calls(path, name, resize):
            yield list(source.inputs(call.args, call.kwargs)), origin
        return
    for site in sites.sites(path, name, resize, target.name.partition(".")[0]):
        yield source.all_inputs(site.calls, target.method or ""), site.path


def _called_as(target: Target) -> str | None:
    """The name in its file of a function, or of an object's class; compiled ones are called as what they compile."""
    if target.kind == "object":
        return type(getattr(target.value, "_orig_mod", target.value)).__name__
    return getattr(getattr(target.value, "_torchdynamo_orig_callable", target.value), "__name__", None)


class Writer:
    """Values of a project's code as source text that `examples.namespace` of a module understands."""

    def __init__(self, module: ModuleType, *, shallow: bool) -> None:
        self.module = module
        self.shallow = shallow
        self.open = False
        """Whether what is unknown in a container is left open: it is no setting, whose name tells enough."""

    def arguments(self, made: Instance, parameters: list[inspect.Parameter], found: dict[str, Use]) -> dict[str, str]:
        named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        given = {**dict(zip(named, made.args)), **made.kwargs}  # noqa: B905
        free = any(p.kind is p.VAR_KEYWORD for p in parameters)
        known = {p.name for p in parameters}
        return self.texts({name: value for name, value in given.items() if free or name in known}, found)

    def texts(self, given: dict[str, Any], found: dict[str, Use]) -> dict[str, str]:
        """Source text by parameter, of those that can be written."""
        written = {name: self.written(value, found.get(name), name) for name, value in given.items()}
        return {name: render(value) for name, value in written.items() if value is not None}

    def all_inputs(self, made: list[values.Call], method: str) -> list[Inputs]:
        """Arguments of the calls of one object. First comes what gives it most, labels too: more of its code is run."""
        calls = [call for call in made if call.method == method]
        calls.sort(key=lambda call: _told(call.args, call.kwargs))
        return [inputs for call in calls for inputs in self.inputs(call.args, call.kwargs)]

    def inputs(self, args: list[Any], kwargs: dict[str, Any]) -> Iterator[Inputs]:
        """Arguments of a call: with large batches cut first, then as they are."""
        tensors: list[torch.Tensor] = []
        _tensors([args, kwargs], tensors)
        if not tensors and all(value is UNKNOWN for value in (*args, *kwargs.values())):
            return
        sizes = [t.shape[0] for t in tensors if t.dim()]
        batch = max(sizes, key=sizes.count, default=0)
        if batch > BATCH and any(t.numel() > ENOUGH for t in tensors):
            yield self._each(args, kwargs, lambda t: t[:BATCH] if t.dim() and t.shape[0] == batch else t)
        yield self._each(args, kwargs, lambda t: t)

    def _each(self, args: list[Any], kwargs: dict[str, Any], cut: Callable[[Any], Any]) -> Inputs:
        def one(value: Any) -> Any:
            written = self.written(value, None, "", cut)
            return UNKNOWN if written is None else written

        self.open = True
        found = [one(value) for value in args], {name: one(value) for name, value in kwargs.items()}
        self.open = False
        return found

    def written(self, value: Any, use: Use | None, name: str, cut: Callable[[Any], Any] = lambda t: t) -> Any:
        """A value to render; None where it is not known, or cannot be written."""
        if value is None or isinstance(value, (bool, int, float, str)):
            return self._plain(value, name)
        if isinstance(value, Output):
            return value if self.open else None
        if isinstance(value, torch.Tensor):
            return _table(value, is_setting=not self.open) or _tensor(value, cut)
        if type(value).__module__ == "numpy" and hasattr(value, "dtype"):
            return _array(value, cut, is_setting=not self.open)
        if is_named_tuple(type(value)) and self._knows(type(value).__name__):
            parts = {n: self.written(item, None, n, cut) for n, item in value._asdict().items()}
            return None if None in parts.values() else Call(type(value).__name__, parts)
        if isinstance(value, (list, tuple)):
            items = [self.written(item, use.item if use is not None else None, name, cut) for item in value]
            if self.open and any(item is not UNKNOWN and item is not None for item in items):
                items = [UNKNOWN if item is None else item for item in items]
            return None if any(item is None for item in items) else (items if isinstance(value, list) else tuple(items))
        if isinstance(value, dict) or type(value).__name__ in ("Namespace", "SimpleNamespace"):
            return self._settings(value, use, cut)
        if isinstance(value, (Instance, Layer, Class, External)):
            return self._object(value, use)
        if isinstance(value, (torch.device, torch.dtype)):
            return Source("torch.device('cpu')" if isinstance(value, torch.device) else str(value))
        return None

    def _plain(self, value: Any, name: str) -> Any:
        if isinstance(value, str) and re.fullmatch(r"(cuda|mps|xpu)(:\d+)?", value):
            value = "cpu"
        deep = self.shallow and type(value) is int and configs.is_depth(name)
        return Source(repr(min(value, 2) if deep else value))

    def _settings(self, value: Any, use: Use | None, cut: Callable[[Any], Any]) -> Any:
        """A mapping, or a namespace where it is used as one."""
        attributes = set(use.attributes if use is not None else ()) - set(dir(dict))
        as_object = not isinstance(value, dict) or bool(attributes and use is not None and not use.keys)
        fields = value if isinstance(value, dict) else vars(value)
        parts = (use.attributes if as_object else use.keys) if use is not None else {}
        if as_object and attributes:  # what nobody reads is left out
            read = attributes | set(classes.attributes_of(classes.text_of(self.module)))
            fields = {n: v for n, v in fields.items() if n in read}
            fields.update(dict.fromkeys(attributes - set(fields), UNKNOWN))
        found: dict[Any, Any] = {
            n: self._setting(str(n), v, parts.get(str(n)), cut) for n, v in fields.items() if isinstance(n, (str, int))
        }
        return Call("SimpleNamespace", found) if as_object else found

    def _setting(self, name: str, value: Any, use: Use | None, cut: Callable[[Any], Any]) -> Any:
        written = self.written(value, use, str(name), cut)
        if written is None and self.open:
            return UNKNOWN
        return written if written is not None else Source(configs.small_value(str(name), None, {}))

    def _object(self, value: Any, use: Use | None) -> Any:
        if isinstance(value, External):
            return Source(_reached(value.name)) if value.name.startswith("torch.") else None
        if isinstance(value, Layer):
            parts = [self.written(item, None, "") for item in value.args]
            named = {n: self.written(v, None, n) for n, v in value.kwargs.items()}
            return None if None in parts or None in named.values() else _called(value.name, parts, named)
        name = value.node.name if isinstance(value, Class) else value.cls.node.name
        known = self._knows(name)
        if isinstance(value, Class):
            return Source(name) if known else None
        if known:
            names = _positional(known)
            parts = [
                self._setting(n, v, None, lambda t: t)
                for n, v in itertools.zip_longest(names[: len(value.args)], value.args, fillvalue="")
            ]
            named = {n: self._setting(n, v, None, lambda t: t) for n, v in value.kwargs.items()}
            constructed = not isinstance(known, type) or not configs.is_config(known)
            if constructed and isinstance(value, Instance) and value.later and _takes_any(known):
                later = {n: self._setting(n, v, None, lambda t: t) for n, v in value.later.items()}
                return _called(name, parts, {**named, **later})
            if None not in parts and (constructed or not value.fields or not self._accepts(known, value.fields)):
                return _called(name, parts, named)
            if None not in parts:
                fields = {n: self._setting(n, v, None, lambda t: t) for n, v in self._own(known, value.fields).items()}
                return Call(name, fields)
        return self._settings(SimpleNamespace(**value.fields), use, lambda t: t) if value.fields else None

    @staticmethod
    def _own(known: type, fields: dict[str, Any]) -> dict[str, Any]:
        parameters = inspect.signature(known).parameters
        return {name: value for name, value in fields.items() if name in parameters}

    def _accepts(self, known: type, fields: dict[str, Any]) -> bool:
        try:
            return bool(self._own(known, fields))
        except (TypeError, ValueError):
            return False

    def _knows(self, name: str) -> Any:
        """The class of a name in the module, or a configuration class beside it."""
        found = vars(self.module).get(name)
        return found if found is not None else classes.named(str(self.module.__file__), name)


def of_run(value: Any) -> Any:
    """What a run gave, as a value to render: its tensors by their shapes; UNKNOWN what cannot be written."""
    if isinstance(value, torch.Tensor):
        written = _tensor(value.detach().cpu(), lambda t: t)
        return UNKNOWN if written is None else written
    if type(value) in (list, tuple):
        return type(value)(of_run(item) for item in value)
    if isinstance(value, dict):
        return {name: of_run(item) for name, item in value.items()}
    return value if value is None or isinstance(value, (bool, int, float, str)) else UNKNOWN


def _told(args: list[Any], kwargs: dict[str, Any]) -> tuple[int, int]:
    """How much a call gives, for an order with the most data first, and then the fewest switches."""
    given = [*args, *kwargs.values()]
    switches = sum(value is None or isinstance(value, (bool, int, float, str)) for value in given)
    return switches - len(given), switches


def _takes_any(known: Any) -> bool:
    """Whether a class takes keywords of any name, and nothing else."""
    try:
        parameters = inspect.signature(known).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.kind is p.VAR_KEYWORD for p in parameters)


def _positional(known: Any) -> list[str]:
    try:
        return [n for n, p in inspect.signature(known).parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    except (TypeError, ValueError):
        return []


def _called(name: str, parts: list[Any], named: dict[str, Any]) -> Source:
    return Source(f"{name}({', '.join([*map(render, parts), *(f'{n}={render(v)}' for n, v in named.items())])})")


def _reached(name: str) -> str:
    """`torch.nn.modules.conv.Conv2d` as it is written."""
    return re.sub(r"^torch\.nn\.modules\.\w+\.|^torch\.nn\.(?=[A-Z])", "nn.", name)


def _tensors(value: Any, found: list[torch.Tensor]) -> None:
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            _tensors(item, found)


def _tensor(value: torch.Tensor, cut: Callable[[Any], Any]) -> Any:
    """A tensor of the same type and range, and of the shape that is left of it."""
    shape = tuple(cut(value).shape)
    if value.numel() > LARGEST:
        value = value[(0,) * value.dim()]
    if value.dtype == torch.bool:
        return Tensor("bool", shape)
    if value.is_floating_point():
        unit = value.numel() > 0 and bool((value >= 0).all()) and bool((value <= 1).all())
        binary = unit and bool(((value == 0) | (value == 1)).all()) and bool(value.any()) and not bool(value.all())
        made = Tensor("binary" if binary else "unit" if unit else "float", shape)
        return made if value.dtype == torch.float32 else Source(f"{made.text()}.to({value.dtype})")
    if value.is_complex() or value.is_sparse or value.numel() == 0:
        return Source(f"torch.zeros({shape!r}, dtype={value.dtype})") if not value.is_sparse else None
    made = Tensor("int", shape, int(value.max()) + 1, int(value.min()))
    return made if value.dtype == torch.int64 else Source(f"{made.text()}.to({value.dtype})")


def _array(value: Any, cut: Callable[[Any], Any], *, is_setting: bool) -> Any:
    try:
        tensor = torch.as_tensor(value)
        written = _table(tensor, is_setting=is_setting) or _tensor(tensor, cut)
    except (TypeError, RuntimeError):
        return None
    if is_setting and tensor.dim() == 0:
        return Source(repr(value.item()))
    return None if written is None else Source(f"{render(written)}.numpy()")


MOST_NUMBERS, MOST_FRACTIONS = 64, 16
"""Numbers of a table that is written as it stands: whole ones, and others."""


def _table(value: torch.Tensor, *, is_setting: bool) -> Source | None:
    """A small tensor with its own numbers, where those mean more than their range does: sizes that a constructor is
    given; of inputs, places in order from 0 on, such as offsets.
    """
    most = MOST_FRACTIONS if value.is_floating_point() else MOST_NUMBERS
    plain = value.layout is torch.strided and not value.is_complex() and 0 < value.numel() <= most
    if not plain or not (is_setting or _in_order(value)):
        return None
    return Source(f"torch.tensor({value.tolist()!r}, dtype={value.dtype})")


def _in_order(value: torch.Tensor) -> bool:
    whole = value.dim() == 1 and not value.is_floating_point() and value.dtype != torch.bool
    return whole and int(value[0]) == 0 < int(value[-1]) and bool((value.diff() >= 0).all())
