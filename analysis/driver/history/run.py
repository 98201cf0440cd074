"""The history of a module: that of each of its programs."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.driver.execution.objects import Callable, union
from graphmend.analysis.driver.history.machine import HistoryMachine
from graphmend.analysis.driver.reach import Reach, text_of

if TYPE_CHECKING:
    from graphmend.analysis.driver.execution.objects import Object, Values
    from graphmend.analysis.driver.guards.atoms import Path
    from graphmend.analysis.driver.guards.variation import Variation
    from graphmend.analysis.program.definitions import FunctionInfo, ModuleInfo
    from graphmend.analysis.resolution.interface import ProgramView


class History(NamedTuple):
    """What varies between the calls of what a module compiles, and the functions that were executed for it."""

    variations: list[Variation]
    visited: frozenset[FunctionInfo]
    arguments: dict[ast.AST, dict[str, Values]]
    """By definition of what is compiled, all that each parameter is in the calls in sight."""
    objects: list[Object]
    """Those that were made."""


def history(program: ProgramView, module: ModuleInfo, reach: Reach) -> History:
    """Execute a module's top level, then each function that may call what is compiled and that nothing executed so far
    has called. Each is a program by itself: of a variation that several show, the one with the most compilations
    counts."""
    machine = HistoryMachine(program, module, reach.near)
    machine.top_level(module)
    arguments: dict[ast.AST, dict[str, Values]] = {}
    _note(arguments, machine)
    compiled = {one.target.info for one in machine.compiled if isinstance(one.target, Callable)}
    for info in list(module.functions.values()):
        if info not in compiled and info not in machine.visited and reach.concerns(text_of(info)):
            machine.begin()
            machine.enter(info, None)
            _note(arguments, machine)
    most: dict[tuple[str, Path], Variation] = {}
    for one in machine.variations:
        known = most.setdefault((one.name, one.path), one)
        if (len(one.changes), one.calls) > (len(known.changes), known.calls):
            most[one.name, one.path] = one
    return History(list(most.values()), frozenset(machine.visited), arguments, machine.objects)


def _note(arguments: dict[ast.AST, dict[str, Values]], machine: HistoryMachine) -> None:
    """What one program gives the functions that it compiles."""
    for definition, frame in machine.frames.items():
        if isinstance(definition, ast.AST):
            known = arguments.setdefault(definition, {})
            for name, values in frame.arguments.items():
                known[name] = union(known.get(name, ()), values)
