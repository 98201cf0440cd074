"""What TorchDynamo comes to while it traces a frame: that is mended before it does, and nothing else.

Measured on torch 2.13: a function that is called in a frame is inlined from the code that it has when
`build_inline_tracer` is called, so that it may be replaced until then. Of one that is only looked at the code is
guarded, so that it has to be replaced before. What is called by a frame that is more than one graph runs as frames of
their own, which begin without being asked for: all is mended then, and from then on.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, Protocol

OLDEST = (2, 13)
"""The oldest minor version with which it was measured that all that is inlined comes this way."""


class Mending(Protocol):
    """Files that run with their own code, and are mended before they are traced."""

    def prepare(self) -> None:
        """Does what is to be done before the first frame while files are mended elsewhere."""

    def waits(self, path: str | None = None) -> bool:
        """Is this file such a one; is there any?"""

    def imports(self) -> int:
        """How many files have begun to be such ones."""

    def reach(self, *paths: str) -> bool:
        """Mends these. True where functions of other files have got another code, which may have been traced."""

    def renew(self, function: FunctionType) -> None:
        """Gives a function that was made of the old code of a mended file the new one."""

    def mend_waiting(self) -> None:
        """Mends all."""


class _Breaks(threading.local):
    """Whether what was traced last is more than one graph."""

    graph: Any = None
    found = False


def follow(mending: Mending) -> Callable[[], bool]:
    """Mends what TorchDynamo inlines before it does, and all as soon as a frame is not one graph: whether one was not
    is what the result says.
    """
    from torch._dynamo.convert_frame import CatchErrorsWrapper
    from torch._dynamo.exc import UnspecializeRestartAnalysis
    from torch._dynamo.output_graph import OutputGraph
    from torch._dynamo.symbolic_convert import InliningInstructionTranslator
    from torch._dynamo.trace_rules import check
    from torch._dynamo.variables import UserFunctionVariable

    breaks, has_broken = _Breaks(), False
    build, convert = InliningInstructionTranslator.build_inline_tracer, CatchErrorsWrapper.__call__
    compile_subgraph, look_at = OutputGraph.compile_subgraph, UserFunctionVariable.__init__

    def reach(path: str) -> None:
        if mending.waits(path) and mending.reach(path):
            # what is traced a second time must be what was traced first, or what is known of that is forgotten
            raise UnspecializeRestartAnalysis(restart_reason="functions that are traced were mended")

    @functools.wraps(look_at)
    def function_variable(self: Any, fn: Any, *args: Any, **kwargs: Any) -> None:
        if type(fn) is FunctionType and mending.waits():
            reach(fn.__code__.co_filename)
            mending.renew(fn)
        look_at(self, fn, *args, **kwargs)

    @functools.wraps(build)
    def build_inline_tracer(parent: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
        reach(function.get_code().co_filename)
        return build(parent, function, *args, **kwargs)

    @functools.wraps(convert)
    def convert_frame(self: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal has_broken
        if mending.waits(frame.f_code.co_filename):
            mending.mend_waiting()  # too late for this frame; its next one begins with the new code
        before, (breaks.graph, breaks.found) = (breaks.graph, breaks.found), (None, False)
        try:
            result = convert(self, frame, *args, **kwargs)
            if breaks.found or (result.guarded_code is None and not check(frame.f_code)):
                has_broken = True
                mending.mend_waiting()
            return result
        finally:
            breaks.graph, breaks.found = before

    @functools.wraps(compile_subgraph)
    def compile_graph(self: Any, tx: Any, reason: Any, *args: Any, **kwargs: Any) -> Any:
        if breaks.graph is not self:  # what an earlier attempt broke at does not count
            breaks.graph, breaks.found = self, False
        breaks.found = breaks.found or reason.graph_break
        return compile_subgraph(self, tx, reason, *args, **kwargs)

    for wrapper in (function_variable, build_inline_tracer, convert_frame, compile_graph):
        _as_if_of(convert.__code__, wrapper)
    inlined: Any = InliningInstructionTranslator
    inlined.build_inline_tracer = staticmethod(build_inline_tracer)
    UserFunctionVariable.__init__ = function_variable  # type: ignore[method-assign]
    CatchErrorsWrapper.__call__ = convert_frame  # type: ignore[method-assign]
    OutputGraph.compile_subgraph = compile_graph  # type: ignore[method-assign]
    return lambda: has_broken


def _as_if_of(code: CodeType, wrapper: Any) -> None:
    """TorchDynamo ends the stacks that it shows where its own file for frames begins: here."""
    wrapper.__code__ = wrapper.__code__.replace(co_filename=code.co_filename)
