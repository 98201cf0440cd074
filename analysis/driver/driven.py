"""What the driver code of a module compiles: its top level is executed, then each function that may compile something
and that nothing executed so far has called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphmend.analysis.driver.execution.machine import DriverMachine
from graphmend.analysis.driver.execution.objects import Atom, Compiled, Object, Values, union
from graphmend.analysis.driver.history.run import History, history
from graphmend.analysis.driver.reach import Reach, text_of
from graphmend.analysis.resolution.classes import mro

if TYPE_CHECKING:
    from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo, ModuleInfo
    from graphmend.analysis.resolution.interface import ProgramView


class Driven:
    """The result: what is compiled, and the objects that were made on the way."""

    def __init__(self, reach: Reach, machine: DriverMachine) -> None:
        self._reach = reach
        self.machine = machine
        self.compiled: list[Compiled] = machine.compiled
        self._history: History | None = None

    @property
    def history(self) -> History:
        """What varies between the calls of what is compiled. The driver code is executed once more for it."""
        if self._history is None:
            self._history = history(self.machine.program, self.machine.main, self._reach)
        return self._history

    def follows(self, info: FunctionInfo, text: str) -> bool:
        """Whether a function, or a new text of it, has a part in what is compiled."""
        seen = info in self.machine.visited or (self._history is not None and info in self._history.visited)
        return seen or self._reach.concerns(text)

    def attribute(self, info: ClassInfo, name: str) -> Values:
        """What an attribute of the instances of a class may be, as far as driver code sets it."""
        return _attribute(self.machine.objects, info, name)

    def later(self, info: ClassInfo, name: str) -> Values:
        """The same as the calls in sight leave it, tensors included."""
        return _attribute(self.history.objects, info, name)

    def variable(self, module: ModuleInfo, name: str) -> Values:
        """What a global may be once the top level has run."""
        return self.machine.top_level(module).variables.get(name, ())


def _attribute(objects: list[Object], info: ClassInfo, name: str) -> Values:
    found = [o.attributes[name] for o in objects if o.info is info and name in o.attributes]
    return union(*found) if found else ()


def drive(program: ProgramView, module: ModuleInfo) -> Driven | None:
    """Execute the driver code of a module; None where it compiles nothing."""
    reach = Reach(program.project, module)
    if not reach.concerns(module.source.text):
        return None
    machine = DriverMachine(program, module, reach.near)
    machine.top_level(module)
    for info in list(module.functions.values()):
        if info not in machine.visited and reach.concerns(text_of(info)):
            machine.enter(info, None)
    called = frozenset(machine.visited)
    for cls in list(module.classes.values()):
        _enter_methods(machine, reach, cls, called)
    return Driven(reach, machine)


def _enter_methods(machine: DriverMachine, reach: Reach, cls: ClassInfo, called: frozenset[FunctionInfo]) -> None:
    """Execute the methods of a class, inherited ones too, that nothing in sight calls on an instance of it."""
    made: set[str] = set()
    for one in mro(cls, machine.program):
        for name, info in one.methods.items():
            if name in made:
                continue
            made.add(name)
            if info in called or not reach.concerns(text_of(info)):
                continue
            receiver: Atom | None = machine.generic(cls)
            if info.is_static:
                receiver = None
            elif info.is_classmethod:
                receiver = machine.class_object(cls)
            if info.name != "__init__":
                machine.enter(info, receiver)


__all__ = ["Driven", "Object", "drive"]
