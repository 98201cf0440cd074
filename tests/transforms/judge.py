"""TorchDynamo and the outputs judge a mend: no break is left, and value, gradient, text and exception stay.

What is judged is on record (`record`), so that `make versions` can say of each rewrite with which torch it holds.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import logging
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import pytest

from graphmend.analysis.check import check
from graphmend.analysis.settings import Settings
from graphmend.analysis.syntax.source import Source
from graphmend.transforms.code.text_edits import apply
from graphmend.transforms.fix import Fix
from graphmend.transforms.mend import Mended, mend_all


class _Torch:
    """torch, imported at its first use: tests that read mended text alone do without it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and name != "_dynamo":  # pytest looks for such names in all that a module holds
            raise AttributeError(name)
        return getattr(pytest.importorskip("torch"), name)


torch: Any = _Torch()

_NUMBERS = itertools.count()

Make = Callable[[], list[tuple[Any, ...]]]


@dataclass
class Record:
    """What one test judges."""

    rewrites: set[str] = field(default_factory=set)
    """Those by which it mended something."""
    ran: bool = False
    """Whether anything was run to see what a mend does."""


record = Record()


class Broken(BaseException):
    """A graph broke. No `Exception`: what a program raises is compared, and this is nothing of the program's."""


def mend_text(text: str, *, unsafe: bool = True) -> Mended:
    mended = mend_all(Source(text, "model.py"), settings=Settings(preview=True), unsafe=unsafe)
    record.rewrites.update(applied.fix.rewrite for applied in mended.applied)
    return mended


def edited(fix: Fix, source: Source) -> str:
    """The text with one mend, also one that is only shown."""
    record.rewrites.add(fix.rewrite)
    return apply(source.text, fix.edits(), source)


@contextlib.contextmanager
def unbroken() -> Iterator[None]:
    """A break of the graph raises. Torch 2.8 has no switch for that; there its log is asked afterwards."""
    record.ran = True
    if hasattr(torch._dynamo, "error_on_graph_break"):
        with torch._dynamo.error_on_graph_break(True):
            yield
        return
    with import_module("graphmend.dynamo.worker.recording.witness").Witness() as log:
        try:
            yield
        finally:
            if log.breaks:
                raise Broken(f"{log.breaks} graph breaks, the first at {log.first}")


def nested(text: str) -> Any:
    """A function that calls `case` of a module's text; `module` is that module."""
    module = types.ModuleType(f"judged_{next(_NUMBERS)}")
    sys.modules[module.__name__] = module  # Dynamo imports the module of an inlined function by its name, once
    with _no_compile():
        exec(compile(text, "model.py", "exec"), module.__dict__)

    def outer(*values: Any) -> Any:
        return module.case(*values)

    outer.module = module  # type: ignore[attr-defined]
    return outer


def run(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """(value, gradients, printed, logged) of a call of a function, or the name of its exception."""
    leaves = [a for a in arguments if isinstance(a, torch.Tensor) and a.requires_grad]
    printed, logged = io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(logged)
    logging.getLogger("judged").addHandler(handler)
    torch.manual_seed(0)
    try:
        with contextlib.redirect_stdout(printed), unbroken():
            value = function(*arguments)
        total = [v.sum() for v in _tensors(value) if v.requires_grad]
        gradients = torch.autograd.grad(sum(total), leaves, allow_unused=True) if leaves and total else ()
    except torch._dynamo.exc.Unsupported:
        raise
    except Exception as error:
        return ("raised", type(error).__name__)
    finally:
        logging.getLogger("judged").removeHandler(handler)
    return (_plain(value), _plain(gradients), printed.getvalue(), logged.getvalue())


@contextlib.contextmanager
def _no_compile() -> Any:
    module = pytest.importorskip("torch")
    real, module.compile = module.compile, lambda f=None, **_: f if f is not None else (lambda g: g)
    try:
        yield
    finally:
        module.compile = real


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in _tensors(v)]
    return []


def _plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return ("tensor", str(value.dtype), tuple(value.shape), value.detach().double().flatten().tolist())
    if isinstance(value, (list, tuple)):
        return tuple(_plain(v) for v in value)
    return value


def close(a: Any, b: Any) -> bool:
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b) or abs(a - b) <= 1e-5 * (1 + abs(b))
    return bool(a == b)


def judge(text: str, inputs: Make, *, unsafe: bool = True) -> str:
    """Mends `case` in a text and judges the result; returns it."""
    mended = mend_text(text, unsafe=unsafe)
    assert mended.changed, [reason for _, reason in mended.left]
    after = mended.source.text
    torch._dynamo.reset()
    before, mended_eager = nested(text), nested(after)
    graded = any(isinstance(a, torch.Tensor) and a.requires_grad for arguments in inputs() for a in arguments)
    compiled = torch.compile(nested(after), backend="aot_eager" if graded else "eager")
    for i in range(len(inputs())):
        wanted = run(before, _made(inputs)[i])
        eager = run(mended_eager, _made(inputs)[i])
        assert close(eager, wanted), f"eager: {wanted} became {eager}\n{after}"
        try:
            answer = run(compiled, _made(inputs)[i])
        except (torch._dynamo.exc.Unsupported, Broken):
            _unless_broken_before(text, after)
            raise
        if wanted[0] == "raised":
            assert answer[0] == "raised", after
        else:
            assert close(answer, wanted), f"compiled: {wanted} became {answer}\n{after}"
    again = mend_text(after, unsafe=unsafe)
    assert not again.changed, f"a second time changes it again\n{after}\n{again.source.text}"
    return after


def _unless_broken_before(text: str, after: str) -> None:
    """Skips what an older torch cannot judge: a call that it breaks at, as the newest does not, stands in the original
    and in what is mended, as the same or as another function. That break has a finding of its own with that torch.
    """
    minor = ".".join(torch.version.__version__.split(".")[:2])
    calls = _broken_with(minor, text)
    if calls and _broken_with(minor, after) <= calls:
        pytest.skip(f"torch {minor} breaks at a call of the original, too")


def _broken_with(minor: str, text: str) -> int:
    """How many findings of a text are a torch's own, and not the newest one's."""
    source = Source(text, "model.py")
    here, newest = (
        {(found.code, found.span) for found in check(source, settings=Settings(torch_version=version)).findings}
        for version in (minor, None)
    )
    return len(here - newest)


def _made(inputs: Make) -> list[tuple[Any, ...]]:
    """The same arguments each time."""
    torch.manual_seed(0)
    return inputs()
