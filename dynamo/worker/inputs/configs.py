"""Configurations and constructor arguments in a size that runs in no time: small numbers by name and annotation.

Configuration objects of configurations are shrunk too. Where the small ones do not go together (a width that is no
multiple of the heads), a later level changes less.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch

from ..discover import Target
from ..project import classes as project_classes
from .reading.shapes import render
from .reading.usage import Use

VOCABULARY = 128
LEVELS = ("small", "shallow", "as it is")
"""All sizes small; only depth, vocabulary and images; nothing."""
DEEPEST = 3

_DEPTH = r"(num|n)_?(hidden_|encoder_|decoder_)?(layers?|blocks?)|layers?$|n_layer"
#: names of sizes in configurations and constructors, and the small value each gets; the first that matches counts
_SIZES: tuple[tuple[str, int], ...] = (
    (r"(vocab|num_embeddings|n_?tokens?$|num_(users|items))", VOCABULARY),
    (_DEPTH, 2),
    (r"depths?$", 2),
    (r"heads?|groups?_?$|experts", 2),
    (r"(^|_)(top_?k|k)$", 1),
    (r"kernel", 3),
    (r"stride|padding|dilation", 1),
    (r"classes|num_labels|out(put)?_?(dim|size|features)?$", 4),
    (r"(in|img|image|input)_?(channels?|chans?|planes)|channels?$", 3),
    (r"d_kv|head_dim|kv_channels", 16),
    (r"intermediate|ffn|d_ff|mlp|inner", 64),
    (r"max_position|max_seq|max_len|block_size|context|n_positions|seq_len|max_source|max_target", 64),
    (r"hidden|d_model|dim|embed|width|features|n_embd|size", 32),
)
_SHALLOW = re.compile(rf"vocab|{_DEPTH}|^(image|img)_size$")
_CONFIG_ENDINGS = ("Config", "Args", "Arguments", "Params", "Cfg", "Options", "Settings")
_CONFIG_NAME = re.compile(r"^(config|cfg|args|hparams|params|conf|opt|options)$")
_PART_NAME = re.compile(r"_(config|cfg|args|hparams|params|conf|opt|options)$")


def is_depth(name: str) -> bool:
    """Whether a setting says how often a part of the model is repeated."""
    return re.search(rf"{_DEPTH}|^depth$", name) is not None


def size(name: str) -> int | None:
    return next((value for pattern, value in _SIZES if re.search(pattern, name)), None)


def small_value(name: str, annotation: Any, small: dict[str, int]) -> str:
    """A constructor argument as source text."""
    kind = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    if kind == "bool" or re.match(r"(use|is|has|with|do|enable)_", name):
        return "False"
    fraction = r"dropout|eps|prob|rate|alpha|beta|gamma|scale|temperature|momentum|cost|decay|ratio|threshold|^lr$"
    whole = kind == "int" or "dilation" in name or name.startswith("sample")
    if kind == "float" or (not whole and re.search(fraction, name)):
        return "0.1" if re.search(r"drop|prob|rate|momentum", name) else "1e-05" if "eps" in name else "1.0"
    is_number = re.match(r"(n|nb|num)_", name) is not None  # of actions: `n_act`
    if kind == "str" or (not is_number and re.search(r"act(ivation)?(_?fn)?$|^(mode|name|type)$", name)):
        return "'relu'" if "act" in name else "''"
    number = size(name)
    if number is None or number in (32,):
        number = small.get("dim", 16)
    elif number == 2 and "head" in name:
        number = small.get("heads", 2)
    elif number == 3 and "channels" in name:
        number = small.get("channels", 3)
    if re.search(r"[Ll]ist|[Tt]uple|[Ss]equence", kind):
        return f"[{number}, {number}]"
    if re.search(r"\bModule\b", kind):
        return "nn.Identity()"
    return str(number)


def text_for(parameter: inspect.Parameter, use: Use, target: Target, module: ModuleType, level: str) -> str | None:
    """`T5Config(vocab_size=128, ...)` for a parameter that takes a configuration; None for any other."""
    found = _config_class(parameter, use, target, module)
    if found is None:
        return None
    name, value = found
    arguments = _arguments(value, module, level, DEEPEST)
    return None if arguments is None else f"{name}({', '.join(f'{n}={v}' for n, v in arguments.items())})"


def others(parameter: inspect.Parameter, use: Use, target: Target, module: ModuleType) -> Iterator[str]:
    """Every other configuration of the file, small: an annotation may name the one of the whole model."""
    found = _config_class(parameter, use, target, module)
    for name, value in list(vars(module).items()) if found is not None else ():
        if is_config(value) and found is not None and value is not found[1] and not issubclass(value, torch.nn.Module):
            arguments = _arguments(value, module, LEVELS[0], DEEPEST) if name == value.__name__ else None
            if arguments:
                yield f"{name}({', '.join(f'{n}={v}' for n, v in arguments.items())})"


def _arguments(value: type, module: ModuleType, level: str, deepest: int) -> dict[str, str] | None:
    """The arguments of a configuration class as source text; None where it does not tell its parameters."""
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return None
    parts = _parts(value, level, deepest)
    found = {}
    for p in parameters:
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            text = parts.get(p.name) or _argument(p, value, module, level, deepest)
            if text is not None:
                found[p.name] = text
    return found


def _argument(p: inspect.Parameter, value: type, module: ModuleType, level: str, deepest: int) -> str | None:
    if p.default is p.empty:
        inner = _named_class(p.annotation, module)
        if inner is not None and is_config(inner[1]) and deepest:
            arguments = _arguments(inner[1], module, level, deepest - 1) or {}
            return f"{inner[0]}({', '.join(f'{n}={v}' for n, v in arguments.items())})"
        return small_value(p.name, p.annotation, {"dim": 32})
    shrunk = shrink(p.name, p.default, level)
    return None if shrunk is None else repr(shrunk)


def shrink(name: str, default: Any, level: str) -> int | None:
    """A smaller number for a setting; None where the default will do."""
    if not isinstance(default, int) or isinstance(default, bool):
        return None
    if name.endswith("token_id"):
        return 1 if default >= VOCABULARY and level != LEVELS[2] else None
    if level == LEVELS[2] or (level == LEVELS[1] and not _SHALLOW.search(name)):
        return None
    number = size(name)
    if number is None:
        return None
    return number if default > number or default < 0 else None


def _parts(value: type, level: str, deepest: int) -> dict[str, str]:
    """Configurations inside of a configuration, as dictionaries: those that an instance with defaults has."""
    if dataclasses.is_dataclass(value) or not deepest or level == LEVELS[2]:
        return {}
    try:
        instance = value()
        parameters = inspect.signature(value).parameters
    except Exception:
        return {}
    inner = {n: getattr(instance, n, None) for n in parameters}
    return {
        name: render(_as_dict(part, level, deepest - 1))
        for name, part in inner.items()
        if part is not None and is_config(type(part)) and type(part) is not value
    }


def _as_dict(config: Any, level: str, deepest: int) -> dict[str, Any]:
    """A configuration's small settings; what it is comes along where the class says so."""
    kind = getattr(config, "model_type", "")
    found: dict[str, Any] = {"model_type": kind} if isinstance(kind, str) and kind else {}
    for p in inspect.signature(type(config)).parameters.values():
        value = getattr(config, p.name, None)
        shrunk = shrink(p.name, value, level)
        if shrunk is not None:
            found[p.name] = shrunk
        elif value is not None and deepest and is_config(type(value)):
            found[p.name] = _as_dict(value, level, deepest - 1)
    return found


def is_config(value: Any) -> bool:
    """Whether a class holds settings: a dataclass, or named as one."""
    if not isinstance(value, type):
        return False
    return dataclasses.is_dataclass(value) or value.__name__.endswith(_CONFIG_ENDINGS)


def _config_class(parameter: inspect.Parameter, use: Use, target: Target, module: ModuleType) -> tuple[str, Any] | None:
    """(its name in the module, the class) of the configuration that a parameter takes."""
    annotated = _named_class(parameter.annotation, module)
    own = getattr(target.value, "config_class", None)
    meant = issubclass(own, annotated[1]) if annotated and isinstance(own, type) else _CONFIG_NAME.match(parameter.name)
    if isinstance(own, type) and meant:
        known = _known_as(own, module)
        if known is not None:
            return known, own
    if annotated is None and _CONFIG_NAME.match(parameter.name):
        annotated = _only_config(module, use)
    elif annotated is None and _PART_NAME.search(parameter.name):
        annotated = _called_alike(parameter.name, module, use)
    return annotated if annotated is not None and is_config(annotated[1]) else None


def _named_class(annotation: Any, module: ModuleType) -> tuple[str, Any] | None:
    named = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    value = vars(module).get(named.strip("'\" ").rpartition(".")[2]) if named else None
    value = annotation if value is None and isinstance(annotation, type) else value
    if not isinstance(value, type) or value in (int, float, str, bool, list, tuple, dict):
        return None
    known = _known_as(value, module)
    return None if known is None else (known, value)


def _known_as(value: type, module: ModuleType) -> str | None:
    return next((n for n, v in vars(module).items() if v is value), None)


def _only_config(module: ModuleType, use: Use) -> tuple[str, Any] | None:
    """The configuration class of the file that has all that is read of a parameter."""
    found = [(n, v) for n, v in vars(module).items() if is_config(v) and not n.startswith("_")]
    found = [(n, v) for n, v in found if not issubclass(v, torch.nn.Module) and not use.keys]
    found = [(n, v) for n, v in found if set(use.attributes) <= _fields(v)]
    own = [(n, v) for n, v in found if v.__module__ == module.__name__]
    if own or found or use.keys or getattr(module, "__file__", None) is None:
        return next(iter(own or found), None)
    beside = project_classes.with_fields(str(module.__file__), set(use.attributes))
    return next(((n, v) for n, v in beside if is_config(v) and not issubclass(v, torch.nn.Module)), None)


def _called_alike(name: str, module: ModuleType, use: Use) -> tuple[str, Any] | None:
    """`TextCfg` for `text_cfg`, where it has all that is read of the parameter."""
    said = name.replace("_", "").lower()
    found = ((n, v) for n, v in vars(module).items() if n.lower() == said and is_config(v))
    return next(((n, v) for n, v in found if set(use.attributes) <= _fields(v)), None)


def _fields(value: type) -> set[str]:
    try:
        return {*inspect.signature(value).parameters, *dir(value)}
    except (TypeError, ValueError):
        return set(dir(value))
