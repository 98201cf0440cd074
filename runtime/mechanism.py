"""The operators that stand in a graph for an output call, a call on the host, and what sets torch's random number
generators, and whether this torch can carry them.

Measured on torch 2.10, 2.12 and 2.13: an operator without results is kept, in order, by Dynamo, AOTAutograd and
Inductor if its effect is registered as ORDERED. While tracing, an operator whose tensors are all constants, as
`torch.tensor(0.1)` is, is run for its value unless it is tagged as one that draws random numbers. Before 2.10 an effect
cannot be registered so; there `available` is False and output breaks the graph as ever.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import CO_NESTED
from types import CodeType
from typing import Any

import torch

from . import generators
from .templates import sites
from .torch_version import version

OLDEST = (2, 10)
"""The oldest minor version with which that was measured."""


def _define() -> Any:
    """Registers the operator and returns it; None on a torch that lacks a part."""
    if version() < OLDEST:
        return None
    try:
        from torch._library.effects import EffectType
        from torch.library import Library, register_fake
    except ImportError:
        return None
    if hasattr(torch.ops.graphmend, "emit"):
        return None  # this package was imported under a second name, and the operator looks into the first one's table
    library = Library("graphmend", "DEF")  # type: ignore[no-untyped-call]
    tags = (torch.Tag.cudagraph_unsafe, torch.Tag.nondeterministic_seeded)
    exact = getattr(torch.Tag, "needs_exact_strides", torch.Tag.needs_fixed_stride_order)
    call = "str site, Tensor[] tensors, Scalar[] numbers"

    def define(schema: str, run: Any, fake: Any, *more: Any) -> None:
        name = schema.partition("(")[0]
        library.define(schema, tags=(*tags, *more))  # type: ignore[no-untyped-call]
        library.impl(name, run, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
        register_fake(f"graphmend::{name}", fake, lib=library)
        library._register_effectful_op(f"graphmend::{name}", EffectType.ORDERED)

    define(f"emit({call}) -> ()", sites.run, lambda site, tensors, numbers: None)
    define(f"host({call}, SymInt[] size, ScalarType dtype) -> Tensor", sites.result, _fake_host)
    define(f"stores({call}, int count) -> Tensor[]", sites.stored, _fake_stores, exact)
    define(generators.TAKEN, generators.taken, generators.fake)
    define(generators.SET, generators.put, lambda state, where: None)
    _keep.append(library)
    return torch.ops.graphmend.emit.default


def _fake_host(site: str, tensors: Any, numbers: Any, size: Any, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty(size, dtype=dtype, device="cpu")


def _fake_stores(site: str, tensors: list[torch.Tensor], numbers: Any, count: int) -> list[torch.Tensor]:
    return [torch.empty_like(tensor) for tensor in tensors[:count]]


_keep: list[Any] = []
"""A library takes its operators along when it is collected."""

operator = _define()
available = operator is not None
host_operator = torch.ops.graphmend.host.default if available else None
store_operator = torch.ops.graphmend.stores.default if available else None
state_operator: Any = torch.ops.graphmend.random_state.default if available else None
set_operator: Any = torch.ops.graphmend.set_random_state.default if available else None
operators = (operator, host_operator, store_operator, state_operator, set_operator)


def capture(context: Any) -> None:
    """Runs inside Dynamo while it traces `emit`: stores the call, binds `site`, `tensors`, `numbers` in that frame."""
    from .tracing.capture import capture  # brings in Dynamo, which is loaded by now

    capture(context)


def permit(context: Any) -> None:
    """Runs inside Dynamo while it traces `select`: binds `permitted` in that frame, whether effects stay in order."""
    from .tracing.capture import permit

    permit(context)


def hide(*codes: CodeType) -> None:
    """Keeps Dynamo from compiling these functions when plain Python calls them; it still traces through them."""
    try:
        from torch._C._dynamo.eval_frame import _FrameAction, _FrameExecStrategy, set_code_exec_strategy
    except ImportError:
        return
    itself_only = _FrameExecStrategy(_FrameAction.SKIP, _FrameAction.DEFAULT)
    for code in codes:
        set_code_exec_strategy(code, itself_only)


_hidden: dict[int, CodeType] = {}
"""By identity: equal code is another one, and what is kept gets no other's number."""


def hide_made(*functions: Callable[[], Any]) -> None:
    """The same for functions inside of a function, as a mend makes them of its statements: where its frame is not
    compiled, these were not, and would each be a graph of its own. What they call is compiled as before.
    """
    for function in functions:
        code = getattr(function, "__code__", None)
        if code is not None and id(code) not in _hidden and code.co_flags & CO_NESTED:
            _hidden[id(code)] = code
            hide(code)
