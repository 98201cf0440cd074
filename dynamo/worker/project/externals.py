"""Calls of installed packages that may be made for real while a project's code is read: those that only compute.

Everything else is unknown. Tensors are made on the CPU; large ones are not made at all.
"""

from __future__ import annotations

import argparse
import builtins
import copy
import importlib
import os
import re
from collections.abc import Callable
from typing import Any

import torch

from .expressions import LARGEST
from .values import UNKNOWN, External, Layer, Opened, in_unknown_folder, known

_PACKAGES = frozenset(
    "torch numpy math random itertools functools collections copy types operator argparse yaml json os sys pathlib"
    " string typing dataclasses enum abc contextlib warnings logging __future__".split()
)
_BUILTINS = frozenset(
    "abs all any bool bytes complex dict divmod enumerate filter float frozenset int isinstance issubclass len list map"
    " max min object ord chr pow range repr reversed round set slice sorted str sum tuple zip type".split()
)
_LOOKED_AT = frozenset({"open", "super", "iter", "next"})
"""Builtins that stand for something else while code is only read."""
_COMPUTE = (
    r"(math|operator|itertools|collections|copy|numpy|string)\.[\w.]+|random\.(random|randint|uniform|choice|sample"
    r"|randrange|Random|gauss)|functools\.partial|types\.SimpleNamespace|os\.path\.\w+|os\.environ\.get|os\.getcwd"
    r"|pathlib\.(Pure)?Path|argparse\.\w+|sys\.path\.\w+|torch\.[a-z]\w*|torch\.\w+Tensor|torch\.(Size|Tensor|Generator)"
    r"|torch\.nn\.functional\.\w+|torch\.nn\.utils\.rnn\.\w+|torch\.(linalg|fft|special)\.\w+|torch\.nn\.Parameter"
    r"|torch\.nn\.parameter\.Parameter|torch\.autograd\.Variable|torch\.cuda\.is_available|torch\.utils\.data\.TensorDataset|torch\.random\.\w+"
)
_REFUSED = re.compile(
    r"numpy\.(save|load|fromfile|memmap|genfromtxt|savetxt|loadtxt|DataSource|f2py|distutils|testing|ctypeslib|lib)"
    r"|os\.path\.(expand\w*)|torch\.(save|load|from_file|compile|set_|seed|manual_seed|get_|use_|import_|hub|jit|cond|vmap|func)"
)
_ALLOWED = re.compile(_COMPUTE)
_PLAIN = (
    int, float, complex, str, bytes, list, tuple, dict, set, frozenset, range, slice, torch.Tensor, torch.device,
    torch.dtype, torch.Generator,
)  # fmt: skip
_OF_DATA = re.compile(r"torch\.(as_)?tensor|numpy\.(as)?array")
"""What numbers are given to that are no sizes."""
_HOLD_ANYTHING = frozenset(
    "list tuple len zip enumerate dict list.append list.insert list.extend dict.get dict.items dict.values"
    " dict.setdefault dict.update".split()
)
_MADE = frozenset(f"torch.{name}" for name in "rand randn zeros ones empty".split())
_BATCH = 2
"""The first size of a new tensor where it is unknown: most often that of a batch out of a loader."""
_WRITES = frozenset("tofile dump share_memory_ storage untyped_storage backward register_hook".split())
_MOVES = frozenset("cuda cpu to npu xpu mps pin_memory".split())


_SETTINGS = frozenset("easydict addict munch ml_collections yacs omegaconf box attrdict bunch mmcv mmengine".split())
"""Packages of mappings whose keys read as attributes."""


class _Settings:
    """Stands for such a package, installed or not: whatever is called makes a dictionary."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return dict if name[:1].isupper() else self


def imported(name: str) -> Any:
    """An installed module, if it is one of those that only compute; else unknown."""
    if name.partition(".")[0] in _SETTINGS:
        return External(name, _Settings())
    if name.partition(".")[0] not in _PACKAGES:
        return UNKNOWN
    try:
        return External(name, importlib.import_module(name))
    except Exception:  # not installed, or broken
        return UNKNOWN


def builtin(name: str) -> Any:
    return External(name, getattr(builtins, name)) if name in _BUILTINS | _LOOKED_AT else UNKNOWN


def is_module_class(value: Any) -> bool:
    inner = value.value if isinstance(value, External) else value
    return isinstance(inner, type) and issubclass(inner, torch.nn.Module)


def member(value: External, name: str) -> Any:
    """An attribute of an installed module or class: a plain value as it is."""
    found = getattr(value.value, name, UNKNOWN)
    if value.name == "sys" and name == "argv":
        return [""]  # nothing is said on the command line
    if found is UNKNOWN or found is None or isinstance(found, _PLAIN):
        return found.copy() if isinstance(found, (list, dict, set)) else found  # `sys.path` stays as it is
    return External(f"{value.name}.{name}", found)


def plain_member(value: Any, name: str, resize: Callable[[int], int]) -> Any:
    """An attribute of a plain value: data as it is, a method as something to call."""
    if isinstance(value, dict) and name not in value and name in ("clone", "deepcopy"):
        return External(name, lambda *args, **kwargs: copy.deepcopy(value))
    if isinstance(value, dict) and not hasattr(dict, name):
        return value.get(name, UNKNOWN)  # a dictionary whose keys read as attributes
    if name.startswith("__") or name in _WRITES:
        return UNKNOWN
    found = getattr(value, name, UNKNOWN)
    if found is UNKNOWN or not callable(found) or isinstance(found, type):
        return found
    if isinstance(value, torch.Tensor) and name in _MOVES:
        return External(name, lambda *args, **kwargs: _moved(value, args))
    if isinstance(value, os.PathLike) and name in ("open", "read_text"):
        return External("file.open", lambda *args, **kwargs: Opened(str(value)))
    if isinstance(value, os.PathLike) and not re.match(r"with_|relative_to|joinpath|resolve|absolute|exists|is_", name):
        return UNKNOWN
    if type(value).__module__ == "argparse" and name.startswith("parse_"):
        return External(name, lambda *args, **kwargs: defaults(value, known_only=name == "parse_known_args"))
    return External(f"{type(value).__name__}.{name}", _harmless(found) if _is_data(value) else None)


def _is_data(value: Any) -> bool:
    root = type(value).__module__.partition(".")[0]
    return isinstance(value, _PLAIN) or root in ("numpy", "random", "collections", "types", "argparse", "pathlib")


def _harmless(method: Any) -> Any:
    return lambda *args, **kwargs: method(*args, **_on_cpu(kwargs))


def _moved(tensor: torch.Tensor, args: tuple[Any, ...]) -> torch.Tensor:
    kind = next((a for a in args if isinstance(a, torch.dtype)), None)
    return tensor if kind is None else tensor.to(kind)


def _on_cpu(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {n: v for n, v in kwargs.items() if n not in ("device", "pin_memory", "requires_grad", "generator")}


def call(function: External, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """What a call gives; unknown where it may do more than compute, or an argument is unknown."""
    value, name = function.value, function.name
    if is_module_class(value) and name.startswith("torch."):
        return Layer("nn." + value.__name__, args, kwargs)
    if name in _READERS:
        return _read(args, _READERS[name])
    if name == "torch.device":
        return torch.device("cpu")
    if value is None or ("." in name and name.partition(".")[0] in _PACKAGES and not _may(name)):
        return UNKNOWN
    kwargs = _on_cpu(kwargs) if name.startswith("torch.") else kwargs
    if name.startswith("argparse."):
        return value(*args, **{n: v for n, v in kwargs.items() if v is not UNKNOWN})
    if name.endswith("add_argument"):
        return value(*args, **{n: v for n, v in kwargs.items() if n in ("default", "action", "dest", "nargs", "const")})
    if name == "functools.partial":
        return Layer(name, args, kwargs)
    args = list(map(_kind, args))
    kwargs = {n: _kind(v) for n, v in kwargs.items()}
    if name in _MADE and len(args) > 1 and args[0] is UNKNOWN:
        args = [_BATCH, *args[1:]]
    if name == "os.path.join" and not known(args):
        return in_unknown_folder(args)
    if not known(args) or not known(kwargs):
        return value(*args, **kwargs) if name in _HOLD_ANYTHING else UNKNOWN
    of_data = _OF_DATA.fullmatch(name) or (name.endswith("Tensor") and isinstance(args[0] if args else None, list))
    sized = name.startswith(("torch.", "numpy.", "Tensor.", "ndarray.")) and not of_data
    if sized and _elements(args) > LARGEST:
        return _hollow(name, args)
    return value(*args, **kwargs)


def _kind(value: Any) -> Any:
    """A class of numbers, or of what holds them, as it is: `int`, `numpy.float32`."""
    named = isinstance(value, External) and (value.name in _BUILTINS or value.name.startswith("numpy."))
    return value.value if named else value


def _may(name: str) -> bool:
    return _ALLOWED.fullmatch(name) is not None and _REFUSED.match(name) is None


def _elements(args: Any) -> int:
    """How many elements the sizes among arguments ask for."""
    number = 1
    for arg in args:
        if type(arg) is int and arg > 1:
            number *= arg
        elif isinstance(arg, (list, tuple)) and all(type(item) is int for item in arg):
            number *= _elements(arg)
    return number


def _hollow(name: str, args: list[Any]) -> Any:
    """A large tensor that takes no memory: one element, repeated."""
    shape = args[-1] if isinstance(args[-1], (list, tuple)) else args
    if name == "torch.randint":
        row = torch.full(tuple(shape)[-1:], args[-2] - 1)
        row[:-1] = args[0] if len(args) > 2 else 0
        return row.expand(shape)
    return torch.zeros(()).expand(shape) if re.fullmatch(r"torch\.(rand|randn|zeros|ones|empty)", name) else UNKNOWN


_YAML = (".yaml", ".yml")
_READERS: dict[str, tuple[str, ...]] = {
    "open": (".json", *_YAML, ".toml"), "json.load": (".json",), "json.loads": (".json",), "yaml.load": _YAML,
    "yaml.safe_load": _YAML, "yaml.full_load": _YAML, "yaml.unsafe_load": _YAML, "toml.load": (".toml",),
}  # fmt: skip
"""Functions that read settings, or open what they are in, and how the names of such files end."""


def _read(args: list[Any], endings: tuple[str, ...]) -> Any:
    """The file that is read, or the data in it."""
    first = args[0] if args else UNKNOWN
    if isinstance(first, (dict, list)):
        return first
    return opened(first, endings)


def opened(path: Any, endings: tuple[str, ...] = Opened("").endings) -> Opened:
    """The file of a path, which may not be known, or be open already."""
    if isinstance(path, Opened):
        return Opened(path.path, endings, somewhere=path.somewhere)
    return Opened(os.fspath(path) if isinstance(path, (str, os.PathLike)) else "", endings)


def defaults(parser: Any, *, known_only: bool) -> Any:
    """What a command line without arguments gives; what it must be told is unknown."""
    found = argparse.Namespace(**parser._defaults)
    for action in parser._actions:
        if action.dest != argparse.SUPPRESS and action.default != argparse.SUPPRESS:
            needed = action.default is None and (action.required or not action.option_strings)
            setattr(found, action.dest, UNKNOWN if needed else action.default)
    return (found, []) if known_only else found
