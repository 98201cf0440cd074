"""The machine that records histories: it executes driver code as the first machine does, but follows numbers, tensor
sizes and modes from round to round of a loop, and traces what is compiled as TorchDynamo would."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from graphmend.analysis.driver.execution import statements
from graphmend.analysis.driver.execution.machine import DriverMachine
from graphmend.analysis.driver.execution.members import is_module
from graphmend.analysis.driver.execution.objects import (
    UNKNOWN,
    Atom,
    Callable,
    ClassObject,
    Compiled,
    Constant,
    Method,
    Named,
    Object,
    Scope,
    Site,
    Values,
)
from graphmend.analysis.driver.frameworks import COMPILERS, COMPILES_ITSELF
from graphmend.analysis.driver.guards.atoms import Numbers, Tensor
from graphmend.analysis.driver.guards.facts import MODES, START
from graphmend.analysis.driver.guards.moment import attribute_of
from graphmend.analysis.driver.guards.trace import Frame, Trace
from graphmend.analysis.driver.guards.variation import Place, Variation
from graphmend.analysis.driver.history import flow, forms, layers, tensors, torch_calls, traced_calls
from graphmend.analysis.driver.history.interface import CHANGING, HELD
from graphmend.analysis.driver.history.numbers import arithmetic

if TYPE_CHECKING:
    from graphmend.analysis.driver.near import Near
    from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo, ModuleInfo
    from graphmend.analysis.resolution.interface import ProgramView

#: steps of one history; what comes behind them is not recorded
_STEPS = 20_000
#: and of one call of what another module defines, so that a large model leaves its driver some
_ELSEWHERE = 4_000


class HistoryMachine(DriverMachine):
    """Executes driver code and records what varies between the calls of what it compiles."""

    def __init__(self, program: ProgramView, main: ModuleInfo, near: Near) -> None:
        super().__init__(program, main, near)
        self.left = _STEPS
        self.trace: Trace | None = None
        self.modes = dict(START)
        self.frames: dict[object, Frame] = {}
        self.variations: list[Variation] = []
        self.signal = ""
        """"break", "continue" or "return" while a loop or function is left for certain."""
        self.choices: tuple[tuple[ast.AST, bool], ...] = ()
        """The branches around, of conditions that are not known."""
        self.program_number = 0
        """Which program this is: each function that nothing in sight calls is one by itself."""
        self.draws = 0
        """How many numbers were drawn at random since the generator was seeded."""
        self.in_place: dict[int, Compiled] = {}
        """Objects that compile their own calls."""
        self._writes: dict[tuple[int, str], Place] = {}
        self._target: Place | None = None

    # -- histories

    def begin(self) -> None:
        """Another program begins: nothing is compiled yet."""
        self.program_number += 1
        self.frames = {}
        self.modes = dict(START)
        self.signal = ""

    def place(self, node: ast.expr | ast.stmt, scope: Scope) -> Place:
        """Where a node of a scope's code stands."""
        return Place(node, scope.function, scope.module, self.trace is not None)

    def write(self, owner: Atom | Scope, name: str) -> Place | None:
        """Where an attribute or a variable was set last; under the name `HELD`, where a container was changed last."""
        return self._writes.get((id(owner), name))

    @contextmanager
    def mode(self, name: str, value: bool) -> Iterator[None]:
        """Run the block in another mode."""
        outer = self.modes.get(name, False)
        self.modes[name] = value
        try:
            yield
        finally:
            self.modes[name] = outer

    # -- what the machine does otherwise

    def define_class(self, info: ClassInfo, scope: Scope) -> ClassObject:
        """A class statement is executed: in a function, it makes another class each time."""
        if scope.function is not None:
            self._classes.pop(info, None)
        return super().define_class(info, scope)

    def make(self, info: ClassInfo | None, name: str, scope: Scope | None = None) -> Object:
        """A new object. It knows its class where there may be several of one definition."""
        made = super().make(info, name, scope)
        if info is not None and scope is not None and scope.function is not None:
            made.attributes["__class__"] = (self.class_object(info),)
        return made

    def evaluate(self, node: ast.expr, scope: Scope) -> Values:
        """The value of an expression."""
        handler = forms.HANDLERS.get(node.__class__)
        if handler is None:
            return super().evaluate(node, scope)
        if not self.spend():
            return UNKNOWN
        values: Values = handler(self, node, scope)
        return values

    def execute(self, body: list[ast.stmt], scope: Scope) -> bool:
        """Execute statements; False where what follows them is never reached."""
        for statement in body:
            if not self.spend():
                return True
            handler = flow.HANDLERS.get(statement.__class__) or statements.HANDLERS.get(statement.__class__)
            try:
                if handler is not None and not handler(self, statement, scope):
                    return False
            except RecursionError:  # an expression nested too deeply; what follows it is executed
                continue
        return True

    def call(
        self, function: Values, arguments: list[Values], keywords: dict[str, Values], node: ast.expr, scope: Scope
    ) -> Values:
        """The value of a call, which is executed."""
        atom = function[0] if len(function) == 1 else None
        if self.trace is not None and not torch_calls.is_followed(atom):
            self.trace.computes |= not (isinstance(atom, Named) and atom.name.startswith("builtins."))
            for values in (*arguments, *keywords.values()):
                self.trace.touch_all(values)
        if self.trace is not None and atom is not None:
            self.trace.touch(atom)
        if isinstance(atom, Method) and isinstance(atom.receiver, Object) and atom.name in CHANGING:
            self._writes[id(atom.receiver), HELD] = self.place(node, scope)
        made = torch_calls.external(self, atom, arguments, keywords, node, scope)
        if made is None:
            made = traced_calls.call(self, atom, arguments, keywords, node, scope)
        return made if made is not None else super().call(function, arguments, keywords, node, scope)

    def name(self, name: str, scope: Scope) -> Values:
        """What a name stands for."""
        values = _number(super().name(name, scope))
        return values if self.trace is None else traced_calls.entering(self, self.trace, name, scope, values)

    def attribute(self, owner: Atom, name: str, scope: Scope) -> Values:
        """The value of an attribute; NOTHING where there is none for certain."""
        if isinstance(owner, Tensor):
            if self.trace is not None:
                self.trace.touch(owner)
            return forms.sizes(self, owner) if name == "shape" else tensors.attribute(owner, name)
        if isinstance(owner, Numbers):
            return (Method(owner, name),) if name in ("item", "tolist") else UNKNOWN
        stored = attribute_of(self, owner, name) if isinstance(owner, (Object, ClassObject)) else ()
        values = stored if name == "training" and stored else super().attribute(owner, name, scope)
        values = _number(values)
        trace = self.trace
        if trace is not None and isinstance(owner, (Object, ClassObject)):
            trace.touch_class(owner)
        if trace is None or not stored or (id(owner), name) in trace.written:
            return values
        path = trace.path(owner)
        return trace.given(values, (*path, ("attribute", name))) if path is not None else values

    def set_attribute(self, owner: Atom, name: str, values: Values) -> None:
        """`owner.name = values`."""
        while isinstance(owner, Compiled):
            owner = owner.target
        if isinstance(owner, Object) and owner.name == torch_calls.PARAMETERS and name == layers.LEARNS:
            for of in owner.attributes.get("of", ()):
                self.set_attribute(of, name, values)
        super().set_attribute(owner, name, values)
        if self._target is not None:
            self._writes[id(owner), name] = self._target
        if self.trace is not None:
            self.trace.written.add((id(owner), name))

    def assign(self, target: ast.expr, values: Values, scope: Scope) -> None:
        """Bind names, attributes and items."""
        outer, self._target = self._target, self.place(target, scope)
        if not forms.stored_in_tensor(self, target, scope):
            super().assign(target, values, scope)
        self._target = outer

    def set_item(self, owner: Object, key: object, target: ast.expr, scope: Scope) -> None:
        """Note where an item is set."""
        self._writes[id(owner), repr(key)] = self._writes[id(owner), HELD] = self.place(target, scope)

    def _bind(self, name: str, values: Values, scope: Scope) -> None:
        super()._bind(name, values, scope)
        holder: Scope | None = scope
        if name in scope.shared:
            while holder is not None and (name in holder.shared or name not in holder.variables):
                holder = holder.outer
            holder = holder or self.top_level(scope.module)
        if self._target is not None and holder is not None:
            self._writes[id(holder), name] = self._target
        if self.trace is not None and holder is not None:
            self.trace.written.add((id(holder), name))

    def run(
        self, function: Callable, arguments: list[Values], keywords: dict[str, Values], *, is_entry: bool = False
    ) -> Values:
        """The result of a function of the program."""
        signal, self.signal = self.signal, ""
        leaves = function.info.module is not self.main and (not self._stack or self._stack[-1].module is self.main)
        kept = max(0, self.left - _ELSEWHERE) if leaves and not self._importing else 0
        self.left -= kept
        try:
            with self._decorated_modes(function.info):
                return super().run(function, arguments, keywords, is_entry=is_entry)
        finally:
            self.signal = signal
            self.left = max(0, self.left) + kept

    @contextmanager
    def _decorated_modes(self, info: FunctionInfo) -> Iterator[None]:
        for name, (mode, value) in MODES.items():
            if value is not None and info.decorated_with(name):
                with self.mode(mode, value):
                    yield
                return
        yield

    def _bind_parameters(
        self,
        function: Callable,
        scope: Scope,
        arguments: list[Values],
        keywords: dict[str, Values],
        is_entry: bool,
    ) -> None:
        super()._bind_parameters(function, scope, arguments, keywords, is_entry)
        if self.trace is not None:
            traced_calls.opened(self.trace, function, scope, len(arguments), keywords)

    def compiles(self, targets: Values, site: Site) -> list[Compiled]:
        """A site compiles something: note it."""
        made = super().compiles(targets, site)
        node = site.node
        function = node.func if isinstance(node, ast.Call) else None
        itself = isinstance(function, ast.Attribute) and function.attr in COMPILES_ITSELF
        if itself and function is not None and site.module.qualified(function) not in COMPILERS:
            self.in_place.update({id(one.target): one for one in made})
        return made

    def eager(
        self, owner: Object, arguments: list[Values], keywords: dict[str, Values], node: ast.expr, scope: Scope
    ) -> Values:
        """A call of an object of the program, whose code is executed."""
        name = "forward" if is_module(self, owner) else "__call__"
        found = self.attribute(owner, name, scope)
        for atom in found if owner.info is not None else ():
            if isinstance(atom, Compiled):
                return self.call((atom,), arguments, keywords, node, scope)
            if isinstance(atom, Callable):
                return self.run(atom, arguments, keywords)
        return UNKNOWN


def _number(values: Values) -> Values:
    """What a name stands for, where it is that of a number: `math.pi`."""
    atom = values[0] if len(values) == 1 else None
    known = arithmetic.CONSTANTS.get(atom.name) if isinstance(atom, Named) else None
    return values if known is None else (Constant(known),)
