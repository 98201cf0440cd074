"""GM202: a log record is made while tracing."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Call, Event
from graphmend.analysis.rules.rule import Break, Context, Rule
from graphmend.analysis.torch_facts import TorchFacts

_METHODS = frozenset(
    "debug info warning warn error exception critical fatal log warning_once info_once error_once warning_advice "
    "isEnabledFor getEffectiveLevel setLevel addHandler removeHandler hasHandlers".split()
)
_LOGGERS = ("logging.Logger.", "logging.LoggerAdapter.", "loguru.logger.", "absl.logging.", "structlog.")


class Logging(Rule):
    """
    What it does:
        Finds calls of a logger's methods, of the `logging` module's functions and of `getLogger` in code that is
        traced.

    Why it breaks:
        TorchDynamo does not trace into `logging` (torch 2.13): it ends the graph, logs, and starts another one.

    Example:
        logger.warning_once("use_cache is ignored")

    Use instead:
        graphmend.runtime.emit(logger.warning_once, "use_cache is ignored")

    Mends:
        logging from inside the graph, or only while not compiling

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM202"
    name = "logging"
    message = "{call}() logs: the graph breaks here"
    advice = "Log from inside the graph (graphmend.runtime.emit), or only while not compiling."
    events = (Call,)
    valid: ClassVar = (
        """
import logging

import torch

logger = logging.getLogger(__name__)

@torch.compile
def f(x, verbose: bool = False):
    if not torch.compiler.is_compiling():
        logger.info("eager")
    return x + 1

def example_inputs():
    return [(torch.ones(4),)]
""",
    )
    invalid: ClassVar = (
        """
import logging

import torch

logger = logging.getLogger(__name__)

@torch.compile
def f(x):
    y = x + 1
    logger.debug("y %s", y)
    return y * 2

def example_inputs():
    return [(torch.ones(4),)]
""",
        """
import logging

import torch

@torch.compile
def f(x):
    y = x + 1
    logging.info("half way")
    return y * 2

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def concerns(self, callee: str, torch: TorchFacts) -> bool:
        owner, _, last = callee.rpartition(".")
        if owner == "logging":
            return last in _METHODS or last in ("getLogger", "basicConfig", "disable")
        return callee.startswith(_LOGGERS) and (last in _METHODS or not callee.startswith("logging."))

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Call)
        owner, _, last = event.callee.rpartition(".")
        if owner == "logging":
            return Break("GB6215" if last == "getLogger" else "GB4841", fill={"call": event.callee})
        return Break("GB0291", fill={"call": f"{owner.rpartition('.')[2]}.{last}"})
