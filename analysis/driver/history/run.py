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


#: by definition of what is compiled, all that each parameter is in the calls of one program
Arguments = dict[ast.AST, dict[str, "Values"]]


class History(NamedTuple):
    """What varies between the calls of what a module compiles, and the functions that were executed for it."""

    variations: list[Variation]
    visited: frozenset[FunctionInfo]
    programs: list[Arguments]
    """By number of a program, what its calls pass."""
    objects: list[Object]
    """Those that were made."""

    def arguments(self, definition: ast.AST, *, varying: bool = False) -> dict[str, Values]:
        """All that each parameter of what is compiled is in the calls in sight; with `varying`, in those programs in
        which something varies."""
        shown = {one.program for one in self.variations}
        found: dict[str, Values] = {}
        for number, program in enumerate(self.programs):
            for name, values in program.get(definition, {}).items() if number in shown or not varying else ():
                found[name] = union(found.get(name, ()), values)
        return found


def history(program: ProgramView, module: ModuleInfo, reach: Reach) -> History:
    """Execute a module's top level, then each function that may call what is compiled and that nothing executed so far
    has called. Each is a program by itself: of a variation that several show, the one with the most compilations
    counts."""
    machine = HistoryMachine(program, module, reach.near)
    machine.top_level(module)
    programs = [_arguments(machine)]
    compiled = {one.target.info for one in machine.compiled if isinstance(one.target, Callable)}
    for info in list(module.functions.values()):
        if info not in compiled and info not in machine.visited and reach.concerns(text_of(info)):
            machine.begin()
            machine.enter(info, None)
            programs.append(_arguments(machine))
    most: dict[tuple[str, Path, ast.AST | None], Variation] = {}
    for one in machine.variations:
        key = one.name, one.path, one.site.node if one.target is None else None
        known = most.setdefault(key, one)
        if (len(one.changes), one.calls) > (len(known.changes), known.calls):
            most[key] = one
    return History(list(most.values()), frozenset(machine.visited), programs, machine.objects)


def _arguments(machine: HistoryMachine) -> Arguments:
    """What the program that was executed last passes to what it compiles."""
    frames = machine.frames.items()
    return {definition: frame.arguments for definition, frame in frames if isinstance(definition, ast.AST)}
