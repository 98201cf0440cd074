"""A pytest plugin: `pytest --graphmend` checks every Python file that pytest looks at, and the fixture
`assert_no_graph_breaks(model, inputs)` fails with the breaks that TorchDynamo makes.

pytest imports this in every project that has GraphMend installed: nothing else is imported before it is needed.
"""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from graphmend.cli.checking.file_checker import Checker

#: the modules that watch TorchDynamo import torch; a test that asks for the fixture has it
_WATCHER = "graphmend.dynamo.worker"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("graphmend", "graph breaks of torch.compile")
    group.addoption("--graphmend", action="store_true", help="check Python files for graph breaks")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix != ".py" or not parent.config.getoption("graphmend"):
        return None
    collected: pytest.Collector = _File.from_parent(parent, path=file_path)
    return collected


class _File(pytest.File):
    def collect(self) -> Iterable[pytest.Item]:
        yield _Check.from_parent(self, name="graphmend")


class _GraphBreaks(Exception):
    """What a check found, as text."""


class _Check(pytest.Item):
    def runtest(self) -> None:
        from graphmend.cli.checking.selection import shown

        checker = _checker(self.config)
        report = checker.check(self.path)
        found = shown([report], checker.configurations, checker.plan)
        places = (f"{item.finding.span.line}:{item.finding.span.column + 1}" for item in found)
        lines = [f"{place}: {i.finding.code} {i.finding.message}" for place, i in zip(places, found, strict=True)]
        if lines or report.problems:
            raise _GraphBreaks("\n".join([*report.problems, *(f"{self.path.name}:{line}" for line in lines)]))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return str(excinfo.value) if isinstance(excinfo.value, _GraphBreaks) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"graphmend: {self.path.name}"


_STASH: pytest.StashKey[Checker] = pytest.StashKey()


def _checker(config: pytest.Config) -> Checker:
    """One for the whole session: modules are read once."""
    from graphmend.cli.checking.file_checker import Checker
    from graphmend.cli.checking.plan import Plan

    if _STASH not in config.stash:
        config.stash[_STASH] = Checker(Plan())
    return config.stash[_STASH]


@pytest.fixture
def assert_no_graph_breaks() -> Callable[..., None]:
    """`assert_no_graph_breaks(model, inputs)`: fails, and names them, if compiling the call breaks the graph.

    `inputs` is a tuple or list of arguments, or one argument; `kwargs` a mapping of keyword arguments. The graph runs
    as it is, without a compiler behind it.
    """
    return _assert_no_graph_breaks


def _assert_no_graph_breaks(model: Any, inputs: Any = (), kwargs: Mapping[str, Any] | None = None) -> None:
    __tracebackhide__ = True
    torch = importlib.import_module("torch")
    watcher = importlib.import_module(f"{_WATCHER}.recording.recorder")
    project = importlib.import_module(f"{_WATCHER}.recording.lines").Project([os.getcwd()])
    arguments = inputs if isinstance(inputs, tuple | list) else (inputs,)
    torch._dynamo.reset()
    trace = logging.getLogger("torch.__trace")  # pytest would show its hundred records of a compilation with a failure
    before, trace.disabled = trace.disabled, True
    try:
        with watcher.Recorder(project.contains) as seen:
            torch.compile(model, backend=seen.backend)(*arguments, **(kwargs or {}))
    finally:
        trace.disabled = before
        torch._dynamo.reset()
    if seen.blind is not None:
        versions = importlib.import_module(f"{_WATCHER}.versions")
        pytest.fail(versions.blind(torch.__version__, seen.blind), pytrace=False)
    breaks = [_line(event) for event in watcher.once_each(seen.events)]
    if breaks:
        number = "1 graph break" if len(breaks) == 1 else f"{len(breaks)} graph breaks"
        pytest.fail("\n".join([f"{number}:", *breaks]), pytrace=False)


def _line(event: Mapping[str, Any]) -> str:
    known = f" [{event['gb_id']}]" if event["gb_id"] else ""
    whole = " (the whole function runs eagerly)" if event["skipped_frame"] else ""
    return f"  {event['file']}:{event['span'][0]}: in {event['function']}: {event['reason']}{known}{whole}"
