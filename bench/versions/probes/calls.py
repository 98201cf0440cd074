"""Which calls break the graph under this interpreter's torch, measured: each is compiled in a function of its own.

    PY calls.py < REQUEST

The request is JSON: {"names": {qualified name: [expression, ...]}, "wanted": how many of them to try,
"together": how many names in one process; with 1 each expression has its own}. The answer has, for each name, the
expressions that plain Python evaluates, each with the type of its first break or null. Standalone: needs nothing but
torch and the file beside it.
"""

from __future__ import annotations

import itertools
import json
import logging
import re
import sys
from typing import Any

from forks import in_a_fork

Verdicts = dict[str, str | None]
"""What a call does, by its text: the type of its first break, that it raises, or None where it is traced."""

PROGRAM = """
def case(x, k):
    y = x + 1
    i = k + 0
    b = y > 0
    value = {expression}
    return y * 2
"""
PRELUDE = """
import collections, contextlib, copy, dataclasses, functools, random, re, sys
@dataclasses.dataclass(frozen=True)
class Point:
    a: int
    b: int = 1
point, counter, deque, pattern, generator = (
    Point(2), collections.Counter("ab"), collections.deque([1, 2]), re.compile("[qz]+"), random.Random(0))
class Plain:
    size = 3
    def __init__(self):
        self.own = 1
class Cached:
    @functools.cached_property
    def value(self):
        return 3
    @functools.cached_property
    def other(self):
        return "other"
plain, cached = Plain(), Cached()
module = torch.nn.Linear(4, 4)
weight = torch.ones(4, 4, requires_grad=True)
"""
_TYPE = re.compile(r"^Graph Break Reason: (?P<reason>.*)$", re.M)
#: a break that gives the frame up comes with its cause further down
_CAUSE = re.compile(r"^(?P<type>.+)\n  Explanation: ", re.M)


class Log(logging.Handler):
    """Keeps what the `graph_breaks` log says."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = record.getMessage()
        except TypeError:  # torch 2.8 logs a repeated break with one argument too many
            text = str(record.msg)
        if text.startswith("Graph break"):
            self.texts.append(text + (str(record.exc_info[1]) if record.exc_info else ""))


def kind(text: str) -> str:
    """The type of a break, as the log has it: the first line behind what was attempted."""
    found = _TYPE.search(text)
    rest = (
        text[found.end() :]
        if found and found["reason"].endswith(":")
        else text[found.start("reason") :]
        if found
        else text
    )
    first = next((line.strip() for line in rest.splitlines() if line.strip()), "")
    cause = _CAUSE.search(text)
    return cause["type"].strip() if first.startswith("Graph break:") and cause else first


def inputs() -> tuple[Any, Any]:
    import torch

    return torch.rand(4, 4) + 0.5, torch.tensor([1, 0, 1, 2])


def evaluate(expression: str) -> bool:
    """Whether plain Python evaluates an expression."""
    try:
        _case(expression)(*inputs())
    except Exception:
        return False
    return True


def judge(expression: str, log: Log) -> str | None:
    """The type of the first break; what was raised, where the compiled call raises; None where all is traced."""
    import torch

    log.texts.clear()
    torch._dynamo.reset()
    try:
        torch.compile(_case(expression), backend="eager")(*inputs())
    except Exception as error:
        return f"raises {type(error).__name__}"
    return kind(log.texts[0]) if log.texts else None


def fitting(names: dict[str, list[str]], wanted: int) -> dict[str, list[str]]:
    """The first expressions of each name that plain Python evaluates."""
    found = {}
    for name, expressions in names.items():
        good = (expression for expression in expressions if evaluate(expression))
        found[name] = list(itertools.islice(good, wanted))
    return found


def listening() -> Log:
    """What from now on keeps the `graph_breaks` log, which nothing else shows."""
    import torch

    log = Log()
    torch._logging.set_logs(graph_breaks=True)
    for name in list(logging.root.manager.loggerDict):
        if name.endswith("__graph_breaks"):
            logger = logging.getLogger(name)
            logger.handlers, logger.propagate = [log], False
    return log


def verdicts(expressions: list[str]) -> Verdicts:
    """Of expressions that are compiled and called one after another in this process."""
    log = listening()
    return {each: judge(each, log) for each in expressions}


def _case(expression: str) -> Any:
    import torch

    scope: dict[str, Any] = {"torch": torch}
    exec(PRELUDE, scope)
    for name in set(re.findall(r"\b([a-z_]+(?:\.[a-z_]+)*)\.\w+\(", expression)):
        parts = name.split(".")
        for end in range(len(parts), 0, -1):
            try:
                __import__(".".join(parts[:end]))
            except ImportError:
                continue
            scope.setdefault(parts[0], sys.modules[parts[0]])
            break
    exec(PROGRAM.format(expression=expression), scope)
    return scope["case"]


def probe(names: dict[str, list[str]], wanted: int, together: int) -> dict[str, Verdicts]:
    """The verdicts on the first expressions of each name that plain Python evaluates, so many names in one process.

    What fits is found out in another process, and where names are not taken together each expression has one of its
    own: some functions break in their first call only, as those of `re` do until it keeps the pattern. Where a process
    does not end well, fewer are taken together; an expression that ends it alone has no verdict.
    """
    found: dict[str, Verdicts] = {}
    items = list(names.items())
    for start in range(0, len(items), together):
        part = dict(items[start : start + together])
        fits = in_a_fork(fitting, part, wanted)
        answer = None if fits is None else _judged(list(itertools.chain(*fits.values())), alone=together == 1)
        if answer is not None:
            told = {name: {each: answer[each] for each in of if each in answer} for name, of in fits.items()}
            found.update({name: of for name, of in told.items() if of})
        elif together > 1:
            found.update(probe(part, wanted, max(together // 5, 1)))
    return found


def _judged(expressions: list[str], alone: bool) -> Verdicts | None:
    """The verdicts of one process, or None; or those that processes of their own answer."""
    if not alone:
        return in_a_fork(verdicts, expressions)
    answers = (in_a_fork(verdicts, [each]) for each in expressions)
    return dict(itertools.chain.from_iterable(answer.items() for answer in answers if answer))


def main() -> None:
    import torch
    import torch._dynamo

    request = json.load(sys.stdin)
    torch.set_num_threads(1)
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    torch._dynamo.reset()
    found = probe(request["names"], request["wanted"], request["together"])
    print(json.dumps({"torch": torch.__version__, "verdicts": found}))


if __name__ == "__main__":
    main()
