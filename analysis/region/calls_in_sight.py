"""What the calls in sight give a compiled function where nothing else says what its parameters are: unannotated masks,
thresholds, batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from graphmend.analysis.driver.execution.objects import ANY, Atom, Values
from graphmend.analysis.driver.guards.atoms import only, raw_of
from graphmend.analysis.lattice.dependence import may_hold_tensor
from graphmend.analysis.lattice.values import (
    NONE,
    UNKNOWN,
    Const,
    Container,
    Static,
    Tensor,
    Value,
    dtype_kind,
    join_all,
)
from graphmend.analysis.program.attribute_flags import set_at_first
from graphmend.analysis.region.compiled_roots import as_join, as_value
from graphmend.analysis.resolution.classes import mro
from graphmend.analysis.resolution.parameters import as_example

if TYPE_CHECKING:
    from graphmend.analysis.driver.driven import Driven
    from graphmend.analysis.lattice.environment import Environment
    from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo, ModuleInfo
    from graphmend.analysis.resolution.interface import ProgramView

#: whose arguments count: anyone's, so that the calls in sight say nothing; those that are known of the calls in sight,
#: of which a break is true then; or those of all calls in programs where something varies between them, so that one
#: that passes something unknown leaves it unknown
Callers = Literal["anyone", "known", "varying"]


class CallsInSight:
    """What driver code, and the calls in it, say of parameters and of the objects and globals that enter with them."""

    def __init__(self, session: ProgramView, driven: Driven | None, callers: Callers) -> None:
        self._session, self._driven, self._callers = session, driven, callers

    def parameters(self, info: FunctionInfo, env: Environment) -> None:
        """The parameters of a compiled function that are given tensors, what holds some, or numbers and strings alone:
        what is declared of them stays, but for rank and dtype of a tensor of which they are not known."""
        if self._driven is None or self._callers == "anyone":
            return
        given = self._driven.history.arguments(info.node, varying=self._callers == "varying")
        rest = [one.arg for one in (info.node.args.vararg, info.node.args.kwarg) if one is not None]
        for name, atoms in given.items():
            before = env.get(name)
            if before is UNKNOWN:
                env[name] = self._joined(name, atoms)
            elif isinstance(before, Tensor):
                env[name] = _declared_as(before, self._joined(name, atoms))
            elif name in rest and isinstance(value := self._joined(name, atoms), Container):
                env[name] = value

    def attribute(self, info: ClassInfo, name: str, for_good: bool = False) -> Value:
        """What driver code makes an attribute of the instances of a class; UNKNOWN where it does not. With `for_good`
        the flag, name or None that it is in every instance."""
        if self._driven is None:
            return UNKNOWN
        if for_good:
            return self._option(self._driven, info, name)
        made = as_join(self._driven.attribute(info, name), {}, self._session)
        if made is not UNKNOWN or self._callers == "anyone":
            return made
        return self._joined(f"self.{name}", self._driven.later(info, name))

    def _option(self, driven: Driven, info: ClassInfo, name: str) -> Value:
        """The flag, name or None that an attribute is in every instance of a class that driver code makes, where only
        its `__init__` sets it; UNKNOWN where instances differ, or something may change it."""
        raw = only(driven.attribute(info, name)) if self._callers == "known" else ...
        if not isinstance(raw, (bool, str, type(None))) or not set_at_first(mro(info, self._session), name):
            return UNKNOWN
        return NONE if raw is None else Const(raw)

    def variable(self, module: ModuleInfo, name: str) -> Value:
        """What driver code makes a global; UNKNOWN where it does not."""
        return as_join(self._driven.variable(module, name), {}, self._session) if self._driven is not None else UNKNOWN

    def _joined(self, name: str, atoms: Values) -> Value:
        if ANY in atoms and self._callers == "varying":
            return UNKNOWN
        values = [self._value(name, atom) for atom in atoms]
        known = [value for value in values if value is not UNKNOWN]
        joined = join_all(known) if known else UNKNOWN
        told = may_hold_tensor(joined) or (isinstance(joined, Static) and ANY not in atoms)
        return joined if told else UNKNOWN

    def _value(self, name: str, atom: Atom) -> Value:
        raw = raw_of(atom)
        if raw is None:
            return NONE
        if raw is not ...:
            return Static(type(raw).__name__)
        return as_example(as_value(atom, {}, self._session), name, "is a Tensor in a call in sight")


def _declared_as(declared: Tensor, given: Value) -> Tensor:
    known = type(declared) is not Tensor or declared.rank is not None or declared.ndarray
    if known or not isinstance(given, Tensor):
        return declared
    dtype = declared.dtype if dtype_kind(given.dtype) is None else given.dtype
    shape = () if given.rank == 0 else declared.shape
    return Tensor(declared.origin, given.rank, dtype, shape, likely=declared.likely, graph_input=declared.graph_input)
