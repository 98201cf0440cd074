"""The result of a history: what varied from one call of compiled code to the next, and was compiled anew for it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.driver.guards import backends
from graphmend.analysis.driver.guards.atoms import Path

if TYPE_CHECKING:
    from graphmend.analysis.driver.execution.objects import Site
    from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo, ModuleInfo


class Place(NamedTuple):
    """Where something stands; `function` is None at a module's top level."""

    node: ast.expr | ast.stmt
    function: FunctionInfo | None
    module: ModuleInfo
    traced: bool = False
    """Whether this is traced code, for a write."""


@dataclass
class Variation:
    """A value that differed between calls: the graph was compiled anew each time one of `changes` came.

    `write` is where an attribute, global or variable was set last; None for what the call itself brings.
    """

    name: str
    """The compiled function."""
    path: Path
    site: Site
    call: Place
    write: Place | None
    changes: list[tuple[object, object]] = field(default_factory=list)
    """(value before, value now), one for each compilation."""
    calls: int = 0
    """Calls of the function in sight, all told."""
    static: bool = False
    """Whether the compile site says `dynamic=False`, or the tensor is marked static in that dimension."""
    in_module: bool = False
    """Whether the path ends in an attribute of a torch.nn.Module."""

    target: FunctionInfo | None = None
    """What is compiled, where it is a function of the program."""
    owner: ClassInfo | None = None
    """The class of the object whose attribute the path ends in."""
    at: dict[ast.expr, Place] = field(default_factory=dict)
    """By call in sight, what it gives where the path begins; the call itself where it gives nothing."""
    dimensions: tuple[int, ...] = ()
    """The dimensions in which the sizes of the tensor differ, where one does."""

    drawn: bool = False
    """Whether the values that differ are drawn at random, so that those of `changes` are only some of them."""
    program: int = 0
    """Which of the module's programs this is of: each function that nothing calls is one by itself."""

    @property
    def subject(self) -> str:
        """What varies, in one word: a parameter, attribute, variable, key or mode."""
        named = [str(step[-1]) for step in self.path if step[0] in _NAMED and isinstance(step[-1], str)]
        if len(self.path) > 1 and self.path[-1][0] == "default":
            return named[0]
        return named[-1] if named else ""

    @property
    def kind(self) -> str:
        """The kind of the last step of the path: "argument", "attribute", "size", "mode" and so on."""
        return str(self.path[-1][0])

    @property
    def number(self) -> bool:
        """Whether the values that differ are numbers, strings, bools or None."""
        return all(isinstance(v, tuple) and len(v) == 2 and v[0] in _PLAIN for v in self.changes[0]) or any(
            isinstance(v, (bool, int, float, str)) for v in self.changes[0]
        )

    @property
    def beside_number(self) -> bool:
        """Whether one of the values that differ is a number, bool or None, whatever the other is."""
        return any(isinstance(v, tuple) and v and v[0] in _PLAIN - {"str"} for v in self.changes[0])

    @property
    def of_kinds(self) -> bool:
        """Whether the values that differ are of several kinds: a tensor and None, a number and a function."""
        return any(len({v[0] for v in pair if isinstance(v, tuple) and v}) > 1 for pair in self.changes)

    @property
    def _given(self) -> str:
        """What the call gives to a parameter that has no name in the program: a module of torch is called."""
        return ast.unparse(self.call.node) if not isinstance(self.call.node, ast.Call) else "the input"

    @property
    def of_tensor(self) -> bool:
        """Whether a property of a tensor differs."""
        return self.kind in ("size", "many", "rank", "dtype", "gradient", "contiguous")

    @property
    def of_another_model(self) -> bool:
        """Whether another module of torch is called, or one whose parameters have other sizes."""
        of_parameter = any(step[0] == "parameter" for step in self.path)
        return of_parameter or self.kind in ("module", "modules") or self.path == (("argument", "fn"),)

    @property
    def guard(self) -> str:
        """The guard that fails, as TorchDynamo 2.13 prints it."""
        before, after = (_shown(v) for v in self.changes[0])
        if self.drawn:
            before, after = "a random number", "another one"
        kind, where = self.kind, written(self.path[:-1])
        if kind == "backend":
            return "BACKEND_MATCH failure: torch.compile detected different backend callables"
        if kind == "mode":
            return f"GLOBAL_STATE changed: {self.path[-1][1]}"
        if kind == "size":
            return f"tensor '{where}' size mismatch at index {self.path[-1][1]}. expected {before}, actual {after}"
        if kind == "many":
            return f"2 <= {where}.size()[{self.path[-1][1]}]"
        if kind == "dtype":
            return f"tensor '{where}' dtype mismatch. expected {before}, actual {after}"
        if kind == "rank":
            return f"tensor '{where}' rank mismatch. expected {before}, actual {after}"
        if kind == "gradient":
            return f"tensor '{where}' requires_grad mismatch. expected requires_grad={int(before == 'True')}"
        if kind == "contiguous":
            return f"tensor '{where}' stride mismatch"
        if kind == "modules":
            return f"len({where}._modules) == {before}"
        if kind in ("length", "keys"):
            held = self.changes[0][0]
            return f"len({where}) == {len(held) if isinstance(held, tuple) else held}"
        if kind == "contains":
            return f"{'' if self.changes[0][0] else 'not '}___dict_contains({self.path[-1][1]!r}, {where})"
        held = self.changes[0][0]
        if isinstance(held, tuple) and held and held[0] in _CHECKED:
            return f"{_CHECKED[str(held[0])]}({written(self.path)})"
        return f"{written(self.path)} == {before}"

    def filled(self) -> dict[str, str]:
        """What messages say of it."""
        show = backends.shown if self.kind == "backend" else _shown
        before, after = (show(v) for v in self.changes[0])
        if self.drawn:
            before, after = "a random number", "another one"
        elif self.kind == "many":
            before, after = ("2 or more" if v is True else "1 or none" for v in self.changes[0])
        elif before == after:
            after = "another one" if self.kind == "backend" else f"another {after.partition(' ')[2]}"
        times = len(self.changes)
        again = "once more" if times == 1 else f"{times} times more"
        return {
            "subject": self.subject if not self.subject.startswith("args[") else self._given,
            "function": self.name,
            "before": before,
            "after": after,
            "again": f"{again} in {self.calls} calls",
        }

    @property
    def each_time(self) -> bool:
        """Whether every value that was not seen before is compiled anew, as far as the calls in sight tell."""
        return len(self.changes) > 1


_NAMED = frozenset(
    {"argument", "attribute", "parameter", "item", "global", "closure", "keyword", "default", "mode", "backend"}
)
#: by what is compared, how TorchDynamo prints the guard
_CHECKED = {
    "object": "___check_type_id", "class": "___check_obj_id", "function": "___check_obj_id",
    "partial": "___check_type_id",
}  # fmt: skip
_PLAIN = frozenset({"bool", "int", "float", "str", "NoneType"})


def written(path: Path) -> str:
    """A path as TorchDynamo 2.13 prints it in guards."""
    text = ""
    for step in path:
        kind, name = step[0], step[-1]
        if kind == "global":
            text = f"G[{name!r}]"
        elif kind == "item":
            text += f"[{name!r}]"
        elif kind == "module":
            text += f"._modules['{name}']"
        elif kind == "parameter":
            text += f"._parameters[{name!r}]"
        elif kind == "attribute":
            text += f".{name}"
        elif kind == "keyword":
            text += f".keywords[{name!r}]"
        elif kind == "default":
            text += ".__defaults__"
        elif kind in ("argument", "closure"):
            text = str(name)
    return text


def _shown(value: object) -> str:
    """A value of a guard, as messages show it."""
    if isinstance(value, tuple) and len(value) == 2 and value[0] in _PLAIN:
        return repr(value[1])
    if isinstance(value, tuple) and value and value[0] in ("Tensor", *_CHECKED):
        if value[0] == "object" and isinstance(value[1], str):
            return f"a {value[1].rpartition('.')[2]}"
        if value[0] == "function" and isinstance(value[1], str):
            return f"`{value[1].removeprefix('builtins.')}`"
        return f"{'an' if value[0] == 'object' else 'a'} {str(value[0]).lower()}"
    return str(value) if not isinstance(value, float) else repr(value)
