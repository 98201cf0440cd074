"""Everything that can be seen of a program: each input runs through its `case`, and what was given, kept, written and
raised is described in plain data.

A description of a tensor names its memory by the place at which it is met first: in the inputs, then in what the
program keeps, then in results. So two runs agree only where they share memory alike.
"""

from __future__ import annotations

import collections
import contextlib
import hashlib
import io
import logging
import math
import os
import random
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

torch.set_warn_always(True)  # what torch says once in a process is said of each program

#: longer tensors are told by a digest of their elements, of which nobody can say whether they differ in their last bits
_SHOWN = 2048
_DEEPEST = 6
#: in what torch 2.13 says of operands whose dtypes it refuses
#: what torch, and Python of a complex number, says where a dtype lacks the operation
_OF_DTYPES = re.compile(
    r"d-?type|can't be cast|data type|scalar type|not implemented for '|instances of '(?:complex|\w+' and 'complex)'",
    re.IGNORECASE,
)


class Memory:
    """Names for storages and for tensors: the path at which each is met first."""

    def __init__(self) -> None:
        self.path: tuple[str, ...] = ()
        self.shared: list[tuple[str, str]] = []
        """Which places hold memory that was met at another one before."""
        self._storages: dict[int, str] = {}
        self._tensors: dict[int, str] = {}
        self._kept: list[Any] = []

    def place(self, tensor: torch.Tensor) -> list[str | None]:
        """The storage, where there is one, the place in it, and the tensor itself."""
        self._kept.append(tensor)
        here = "/".join(self.path)
        try:
            pointer = tensor.untyped_storage().data_ptr()
        except (RuntimeError, NotImplementedError):
            pointer = 0
        storage = self._storages.setdefault(pointer, here) if pointer and tensor.numel() else None
        shared = storage is not None and storage != here
        if shared:
            self.shared.append((here, str(storage)))
        return [storage, str(tensor.storage_offset()) if shared else None, self._tensors.setdefault(id(tensor), here)]

    @contextlib.contextmanager
    def inside(self, part: object) -> Iterator[None]:
        self.path = (*self.path, str(part))
        try:
            yield
        finally:
            self.path = self.path[:-1]


def described(value: Any, memory: Memory, depth: int = 0) -> Any:
    if isinstance(value, torch.Tensor):
        return _tensor(value, memory)
    if depth > _DEEPEST:
        return ["deep"]

    def further(inner: Any, part: object) -> Any:
        with memory.inside(part):
            return described(inner, memory, depth + 1)

    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *(further(v, i) for i, v in enumerate(value))]
    if isinstance(value, dict):
        return [type(value).__name__, *([str(k), further(v, k)] for k, v in value.items())]
    if isinstance(value, (set, frozenset)):
        return [type(value).__name__, *sorted(repr(further(v, "in")) for v in value)]
    if isinstance(value, collections.deque):
        return ["deque", *(further(v, i) for i, v in enumerate(value))]
    if isinstance(value, (np.ndarray, np.generic)):
        return [type(value).__name__, str(value.dtype), str(value.shape), repr(value.tolist())]
    if isinstance(value, str):
        return ["str", repr(_without_history(value))]
    if isinstance(value, (int, float, bytes, bool, complex, type(None), slice, range, torch.Size, torch.dtype)):
        return [type(value).__name__, repr(value)]
    if isinstance(value, (torch.nn.Module, types.SimpleNamespace)) or type(value).__module__ == "program":
        return [type(value).__name__, *([k, further(v, k)] for k, v in sorted(vars(value).items()) if k not in _HIDDEN)]
    return [type(value).__name__]


#: what a module keeps for itself and what torch.compile leaves on it
_HIDDEN = {"_compiled_call_impl", "_is_full_backward_hook", "_modules_order", "__annotations__"}


def _tensor(value: torch.Tensor, memory: Memory) -> dict[str, Any]:
    strides = [s for s, n in zip(value.stride(), value.shape, strict=True) if n > 1] if value.numel() else []
    return {
        "type": type(value).__name__,
        "dtype": str(value.dtype),
        "shape": list(value.shape),
        "stride": strides,
        "device": str(value.device),
        "requires_grad": value.requires_grad,
        "leaf": _is_leaf(value),
        "alias": memory.place(value),
        "data": _elements(value),
    }


def _is_leaf(value: torch.Tensor) -> bool | str:
    try:
        return value.is_leaf or not value.requires_grad
    except RuntimeError:  # a view made where gradients are off, of what was changed since
        return "raises"


def _elements(value: torch.Tensor) -> list[str]:
    if value.device.type == "meta":
        return ["meta"]
    plain = value.detach().resolve_conj().resolve_neg()
    plain = torch.view_as_real(plain) if plain.is_complex() else plain
    listed = (plain if plain.dtype == torch.int64 else plain.double()).flatten().tolist()
    texts = [repr(v) for v in listed]
    return texts if len(texts) <= _SHOWN else [*texts[:4], hashlib.md5(" ".join(texts).encode()).hexdigest()]


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors in a value, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors(v)]
    if isinstance(value, dict):
        return [t for v in value.values() for t in tensors(v)]
    return []


def _leaves(value: Any) -> list[Any]:
    """All that a value holds, in order."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else None
    return [value] if parts is None else [leaf for part in parts for leaf in _leaves(part)]


class _Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[list[str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.partition(".")[0] in ("torch", "filelock"):
            return  # of a compiler that a program starts itself
        place = os.path.basename(record.pathname)
        self.seen.append([record.name, record.levelname, record.getMessage(), place, record.funcName])


@contextlib.contextmanager
def _recorded(seen: dict[str, Any]) -> Iterator[None]:
    """Output, logs and warnings go to `seen`."""
    out, err, records, root = io.StringIO(), io.StringIO(), _Records(), logging.getLogger()
    root.addHandler(records)
    root.setLevel(1)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                yield
    finally:
        root.removeHandler(records)
        seen["stdout"] = _without_history(out.getvalue())
        seen["stderr"] = _without_history(re.sub(r'[^\s"]*\.py', "F.py", err.getvalue()))
        seen["logs"] = [[name, level, _without_history(text), *where] for name, level, text, *where in records.seen]
        seen["warnings"] = [
            [w.category.__name__, _without_history(str(w.message))[:200], _is_placed(w)] for w in caught
        ]


def _without_history(text: str) -> str:
    """A text without what it says of a tensor's history, which is seen of the tensor itself."""
    return re.sub(r",\s+(grad_fn=<\w+>|requires_grad=True)", "", text)


def _is_placed(warning: warnings.WarningMessage) -> bool:
    """Does a warning name a line of the program? Those of torch's own conversions name whoever called it."""
    return os.path.basename(warning.filename) == "program.py" or "to a scalar" in str(warning.message)


def answer(
    function: Callable[..., Any], kept: Callable[[], dict[str, Any]], arguments: tuple[Any, ...]
) -> dict[str, Any]:
    """What is seen of one call; `kept` gives what the program keeps between calls."""
    torch.default_generator.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    seen: dict[str, Any] = {}
    given = tensors(arguments)
    state = kept()
    modules = (v for v in state.values() if isinstance(v, torch.nn.Module))
    parameters = list({id(p): p for module in modules for p in module.parameters()}.values())
    leaves = [t for t in [*given, *parameters] if t.requires_grad]
    memory = Memory()
    _described_first(arguments, state, memory)
    with _recorded(seen):
        try:
            value = function(*arguments)
        except Exception as error:
            seen["raised"] = type(error).__name__
            seen["of_dtypes"] = bool(_OF_DTYPES.search(str(error)))
        else:
            with memory.inside("value"):
                seen["value"] = described(value, memory)
            seen["grads"] = _gradients(value, leaves)
    seen["modes"] = [torch.is_grad_enabled(), str(torch.get_default_dtype()), torch.is_autocast_enabled("cpu")]
    torch.set_grad_enabled(True)
    with memory.inside("inputs"):
        seen["inputs"] = described(arguments, memory)
    with memory.inside("kept"):
        seen["state"] = described(kept(), memory)
    seen["rng"] = [hashlib.md5(state).hexdigest() for state in _generators()]
    return seen


def _generators() -> list[bytes]:
    """The states of the generators of random numbers."""
    _, key, *numpy_rest = np.random.get_state()  # its repr would take most of a judge's time
    return [
        torch.get_rng_state().numpy().tobytes(),
        repr(random.getstate()).encode(),
        np.asarray(key).tobytes() + repr(numpy_rest).encode(),
    ]


def _gradients(value: Any, leaves: list[torch.Tensor]) -> Any:
    """Those of the sum of the results; each result has a weight, so that they cannot be exchanged, whichever others ask
    for gradients.
    """
    results = [(t, i) for i, t in enumerate(_leaves(value), start=1) if isinstance(t, torch.Tensor) and t.requires_grad]
    if not results or not leaves:
        return None
    try:
        total = sum((t.abs() if t.is_complex() else t).sum() * weight for t, weight in results)
        found = torch.autograd.grad(total, leaves, allow_unused=True)  # type: ignore[arg-type]
    except Exception as error:
        return ["raised", type(error).__name__]
    # how a gradient lies in memory, and the sign of a zero in it, is the engine's choice
    return [described(None if g is None else g.contiguous() + 0, Memory()) for g in found]


def loaded(text: str) -> types.ModuleType:
    """The program as a module; `torch.compile` in it does nothing while it is loaded."""
    module = types.ModuleType("program")
    module.__file__ = "program.py"
    sys.modules["program"] = module
    torch.default_generator.manual_seed(0)
    with _uncompiled():
        exec(compile(text.removeprefix("\ufeff"), "program.py", "exec"), module.__dict__)
    return module


@contextlib.contextmanager
def _uncompiled() -> Iterator[None]:
    """`torch.compile` does nothing where the program calls it; torch's loops call it in plain Python, too (2.13)."""
    real = torch.compile

    def compiled(model: Any = None, **options: Any) -> Any:
        if sys._getframe(1).f_globals.get("__name__") != "program":
            return real(model, **options)
        return model if model is not None else (lambda function: function)

    torch.compile = compiled  # type: ignore[assignment]
    try:
        yield
    finally:
        torch.compile = real


def inputs(text: str) -> list[tuple[Any, ...]]:
    torch.default_generator.manual_seed(1)
    made: list[tuple[Any, ...]] = eval(text, {"torch": torch, "nn": torch.nn, "np": np, "math": math})
    return made


def observed_each(texts: list[str], given: str, names: tuple[str, ...], backend: str) -> list[Any]:
    """The same for several texts, one after the other; the name of the exception for one that cannot be loaded."""
    found: list[Any] = []
    for text in texts:
        try:
            found.append(observed(text, given, names, backend))
        except Exception as error:
            found.append(type(error).__name__)
        if backend:
            torch._dynamo.reset()
    return found


def observed(text: str, given: str, names: tuple[str, ...], backend: str) -> list[dict[str, Any]]:
    """What is seen of a program for each of its inputs, compiled by a backend or, without one, in plain Python. `names`
    are those of the module whose values are looked at.
    """
    module = loaded(text)
    if backend:
        return _answers(module, torch.compile(module.case, backend=backend), given, names)
    with _uncompiled():
        return _answers(module, module.case, given, names)


class _Nudged(TorchDispatchMode):
    """Each floating result is off by one in its last bit, or not."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = torch.Generator()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        new = all(r.alias_info is None for r in func._schema.returns) and not func._schema.is_mutable
        if not (new and isinstance(found, torch.Tensor) and found.is_floating_point()):
            return found
        by = torch.randint(-1, 2, found.shape, generator=self._numbers).to(found)
        return found.add_(found.abs().mul(by).mul(torch.finfo(found.dtype).eps))


def observed_nudged(text: str, given: str, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The same in plain Python, where every operation rounds otherwise."""
    module = loaded(text)

    def nudged(*arguments: Any) -> Any:
        with _Nudged():
            return module.case(*arguments)

    return _answers(module, nudged, given, names)


def _answers(
    module: types.ModuleType, function: Callable[..., Any], given: str, names: tuple[str, ...]
) -> list[dict[str, Any]]:

    def kept() -> dict[str, Any]:
        shown = {"observe()": module.observe()} if hasattr(module, "observe") else {}
        return {**shown, **{name: getattr(module, name, None) for name in names}}

    found: list[dict[str, Any]] = []
    shared: list[tuple[str, str]] = []
    for i in range(len(inputs(given))):
        if function is not module.case:
            # torch 2.13 uses a graph that writes to inputs for others that share memory otherwise: a wrong answer
            before, shared = shared, _shared(inputs(given)[i], kept())
            if shared != before:
                torch._dynamo.reset()
        found.append(answer(function, kept, inputs(given)[i]))
    return found


def _shared(arguments: tuple[Any, ...], state: dict[str, Any]) -> list[tuple[str, str]]:
    """Who shares memory with whom when a call begins."""
    memory = Memory()
    _described_first(arguments, state, memory)
    return memory.shared


def _described_first(arguments: tuple[Any, ...], state: dict[str, Any], memory: Memory) -> None:
    """Names what a call begins with by the places at which it is described behind the call as well: what is met at
    two of them shares its memory.
    """
    for name, value in (("inputs", arguments), ("kept", state)):
        with memory.inside(name):
            described(value, memory)
