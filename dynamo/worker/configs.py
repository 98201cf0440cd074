"""Constructor arguments: small numbers by name and annotation, and configurations shrunk to a size that runs in no
time.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from types import ModuleType
from typing import Any

from .discover import Target

VOCABULARY = 128

#: names of sizes in configurations and constructors, and the small value each gets; the first that matches counts
_SIZES: tuple[tuple[str, int], ...] = (
    (r"vocab|num_embeddings|n_tokens", VOCABULARY),
    (r"(num|n)_?(hidden_|encoder_|decoder_)?(layers?|blocks?)|layers?$|depths?$|n_layer", 2),
    (r"heads?|groups?_?$|experts", 2),
    (r"kernel", 3),
    (r"stride|padding|dilation", 1),
    (r"classes|num_labels|out(put)?_?(dim|size|features)?$", 4),
    (r"(in|img|image|input)_?(channels?|chans?|planes)|channels?$", 3),
    (r"d_kv|head_dim|kv_channels", 16),
    (r"intermediate|ffn|d_ff|mlp|inner", 64),
    (r"max_position|max_seq|max_len|block_size|context|n_positions|seq_len|max_source|max_target", 64),
    (r"hidden|d_model|dim|embed|width|features|n_embd|size", 32),
)
USUAL_INPUTS = (
    "input_ids",
    "decoder_input_ids",
    "pixel_values",
    "input_features",
    "input_values",
    "inputs_embeds",
    "x",
    "inputs",
)


def first_of_each_kind(usual: list[inspect.Parameter]) -> list[inspect.Parameter]:
    """Token ids make embeddings of them needless."""
    names = {p.name for p in usual}
    return [p for p in usual if p.name != "inputs_embeds" or "input_ids" not in names]


def size(name: str) -> int | None:
    return next((value for pattern, value in _SIZES if re.search(pattern, name)), None)


def small_value(name: str, annotation: Any, small: dict[str, int]) -> str:
    """A constructor argument as source text."""
    kind = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    if kind == "bool":
        return "False"
    if kind == "float" or re.search(r"dropout|eps|prob|rate|alpha|beta|scale|temperature|momentum", name):
        return "0.1" if re.search(r"drop|prob|rate|momentum", name) else "1e-05" if "eps" in name else "1.0"
    if kind == "str":
        return "'relu'" if "act" in name else "''"
    number = size(name)
    if number is None or number in (32,):
        number = small.get("dim", 16)
    elif number == 2 and "head" in name:
        number = small.get("heads", 2)
    if re.search(r"[Ll]ist|[Tt]uple|[Ss]equence", kind):
        return f"[{number}, {number}]"
    if re.search(r"\bModule\b", kind):
        return "nn.Identity()"
    return str(number)


def text_for(parameter: inspect.Parameter, target: Target, module: ModuleType) -> str | None:
    """`T5Config(vocab_size=128, ...)` for a parameter that takes a configuration; None for any other."""
    found = _config_class(parameter, target, module)
    if found is None:
        return None
    name, value = found
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return None
    arguments = []
    for p in parameters:
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        number = size(p.name)
        default = p.default
        if p.name.endswith("token_id") and isinstance(default, int) and default >= VOCABULARY:
            arguments.append(f"{p.name}=1")
        elif default is p.empty:
            arguments.append(f"{p.name}={small_value(p.name, p.annotation, {'dim': 32})}")
        elif number is not None and isinstance(default, int) and not isinstance(default, bool) and default > number:
            arguments.append(f"{p.name}={number}")
    return f"{name}({', '.join(arguments)})"


def _config_class(parameter: inspect.Parameter, target: Target, module: ModuleType) -> tuple[str, Any] | None:
    annotation = parameter.annotation
    named = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    value = vars(module).get(named.strip("'\" ").rpartition(".")[2]) if named else None
    if value is None and isinstance(annotation, type):
        value = annotation if dataclasses.is_dataclass(annotation) else None
    if value is None and re.fullmatch(r"config|cfg|args|hparams|params", parameter.name):
        value = getattr(target.value, "config_class", None) or _only_config(module)
    if not isinstance(value, type) or value in (int, float, str, bool, list, tuple, dict):
        return None
    is_config = dataclasses.is_dataclass(value) or value.__name__.endswith(("Config", "Args", "Params", "Cfg"))
    known = next((n for n, v in vars(module).items() if v is value), None)
    return (known, value) if is_config and known is not None else None


def _only_config(module: ModuleType) -> Any:
    found = [v for n, v in vars(module).items() if isinstance(v, type) and n.endswith(("Config", "Args"))]
    own = [v for v in found if v.__module__ == module.__name__]
    return next(iter(own or found), None)
