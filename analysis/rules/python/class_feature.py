"""GM508: a class has a feature that Dynamo does not trace."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from graphmend.analysis.interpreter.events import Call, Event, Operation
from graphmend.analysis.lattice.values import Container, MarkedTensor, Static
from graphmend.analysis.program.definitions import ClassInfo
from graphmend.analysis.program.entities import Class, Instance, Super
from graphmend.analysis.rules.rule import Break, Context, Rule
from graphmend.analysis.torch_facts import TorchFacts

_TYPED_DICT = ("typing.TypedDict", "typing_extensions.TypedDict")
_ABSTRACT = frozenset({"abc.ABC"})
#: bases whose instances are validated in compiled code of pydantic
_MODELS = frozenset({"pydantic.BaseModel", "pydantic.main.BaseModel", "pydantic_settings.BaseSettings"})


class ClassFeature(Rule):
    """
    What it does:
        Finds instances of abstract classes, of pydantic's models and dataclasses and of a `TypedDict` with optional
        keys, subclasses of Tensor made from other things than a tensor, some of their attributes, `super().__init__()`
        outside of `__init__`, attributes that `super()` does not have, modules that were never initialised.

    Why it breaks:
        TorchDynamo makes objects and looks up attributes by a model of what Python does, which leaves these out
        (torch 2.13).

    Example:
        class Options(TypedDict, total=False): ...

    Use instead:
        class Options(TypedDict): ...

    Mends:
        none: make the object outside of the compiled function

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM508"
    name = "class-feature"
    message = "TorchDynamo does not trace {what}: the graph breaks here"
    advice = "Make the object outside of the compiled function."
    events = (Call, Operation)
    valid: ClassVar = (
        """
import typing

import torch

class Options(typing.TypedDict):
    by: int

class Base:
    def by(self):
        return 2

class Twice(Base):
    def by(self):
        return super().by()

@torch.compile
def f(x):
    return x * Options(by=2)["by"] + Twice().by()

def example_inputs():
    return [(torch.ones(4),)]
""",
    )
    invalid: ClassVar = (
        """
import typing

import torch

class Options(typing.TypedDict, total=False):
    by: int

@torch.compile
def f(x):
    y = x + 1
    options = Options(by=2)
    return y * options["by"]

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def concerns(self, callee: str, torch: TorchFacts) -> bool:
        return callee == "class"

    def judge(self, event: Event, context: Context) -> Break | None:
        if isinstance(event, Operation):
            if isinstance(event.value, MarkedTensor):
                found = _of_subclass(event.value, event.name.removeprefix("subclass."), context.torch)
                return None if found is None else Break(found[0], fill={"what": found[1]})
            if isinstance(event.value, Class) and event.name == "descriptor":
                return Break("GB9567", fill={"what": "a descriptor of an opaque class"})
            if isinstance(event.value, Instance) and event.name == "uninitialised":
                what = "a module whose `__init__` does not call torch.nn.Module's"
                return Break("GB0119", fill={"what": what})
            if isinstance(event.value, Class) and event.name == "metaclass":
                found = _of_metaclass(event.value.info)
                return None if found is None else Break(found[0], fill={"what": found[1]})
            if isinstance(event.value, Instance) and event.name == "__getattr__":
                is_object = isinstance(event.value.info.names["__getattr__"], ast.Call)
                return Break("GB0256", fill={"what": "a `__getattr__` that is an object"}) if is_object else None
            if not isinstance(event.value, Super) or not event.name.startswith("super()."):
                return None
            found = _of_super(event.value, event.name.removeprefix("super()."))
        else:
            assert isinstance(event, Call)
            assert isinstance(event.receiver, Class)
            info = event.receiver.info
            found = next(_made(event, info, context), None)
        return None if found is None else Break(found[0], fill={"what": found[1]})


def _made(event: Call, info: ClassInfo, context: Context) -> Iterator[tuple[str, str]]:
    """What is refused of a call of a class."""
    bases = [info.module.qualified(base) or "" for base in info.node.bases]
    if any(base in _TYPED_DICT for base in bases) and any(
        k.arg == "total" and isinstance(k.value, ast.Constant) and k.value.value is False for k in info.node.keywords
    ):
        yield "GB0257", "a TypedDict with optional keys"
    if "__new__" not in info.methods and _stays_abstract(info):
        yield "GB2404", "an instance of an abstract class"
    given = event.arguments[0] if len(event.arguments) == 1 else None
    if _is_pydantic(info):
        yield "GB3383", "the making of a pydantic dataclass"
    above = {c.module.qualified(base) for c in context.classes(info) for base in c.node.bases}
    if not above.isdisjoint(_MODELS) and not context.is_module(Instance(info)):
        yield "GB0156", "the making of a pydantic model"
    made_by_torch = "torch.Tensor" in bases and not {"__new__", "__init__"} & info.methods.keys()
    if made_by_torch and isinstance(given, (Container, Static)):
        yield "GB0026", "a subclass of Tensor that is made from no tensor"


#: what a subclass of Tensor inherits, and Dynamo does not read of one
_UNREAD = frozenset({"grad", "_grad", "_base"})


def _of_subclass(value: MarkedTensor, name: str, torch: TorchFacts) -> tuple[str, str] | None:
    """What is refused of an attribute of a tensor whose class is the program's own."""
    if name in _UNREAD:
        return "GB0163", f"`.{name}` of a subclass of Tensor"
    info = value.mark("class")
    made = info.names.get(name) if isinstance(info, ClassInfo) else None
    is_function = isinstance(made, ast.Lambda) or (isinstance(made, ast.Call) and _wraps_function(made))
    if made is None or is_function or not torch.has_method(name):
        return None
    return "GB0164", f"`.{name}` of a subclass of Tensor that has something else there"


def _wraps_function(made: ast.Call) -> bool:
    return isinstance(made.func, ast.Name) and made.func.id in ("property", "classmethod", "staticmethod")


def _is_pydantic(info: ClassInfo) -> bool:
    decorators = (d.func if isinstance(d, ast.Call) else d for d in info.node.decorator_list)
    return any(info.module.qualified(d) == "pydantic.dataclasses.dataclass" for d in decorators)


def _stays_abstract(info: ClassInfo) -> bool:
    """Whether a class has abstract methods that nothing overrides, as far as its bases are in the same module."""
    classes = [info, *_bases(info)]
    outside = {info.module.qualified(base) or "" for cls in classes for base in cls.node.bases}
    metaclasses = {info.module.qualified(k.value) for cls in classes for k in cls.node.keywords if k.arg == "metaclass"}
    if not (outside & _ABSTRACT or "abc.ABCMeta" in metaclasses):
        return False
    seen: set[str] = set()
    for cls in classes:
        for name, method in cls.methods.items():
            if name not in seen and _is_abstract(method.node):
                return True
        seen |= cls.methods.keys() | cls.names.keys()
    return False


def _is_abstract(node: ast.AST) -> bool:
    names = (ast.unparse(d).rpartition(".")[2] for d in getattr(node, "decorator_list", ()))
    return any(name in ("abstractmethod", "abstractproperty") for name in names)


def _of_super(value: Super, name: str) -> tuple[str, str] | None:
    """What is refused of `super().name(...)`, where no class of the program has such a method."""
    bases = _bases(value.after)
    if name == "__new__" and _stays_abstract(value.info):
        return "GB7502", "an instance of an abstract class"
    if name == "__init__":
        return "GB0162", "`super().__init__()` outside of `__init__`"
    if any(isinstance(info.names.get(name), ast.Call) for info in bases):
        return "GB0006", f"`super().{name}()`, which is an object"
    own = {base for info in (value.after, *bases) for base in map(ast.unparse, info.node.bases)}
    if own - {info.name for info in bases} - {"object"}:
        return None  # a class without available source may have it
    if any(name in info.names or name in info.assigned for info in bases) or name in dir(object):
        return None
    return "GB0113", f"`super().{name}`, which no base has"


def _bases(info: ClassInfo) -> list[ClassInfo]:
    """The bases that are defined in the same module."""
    found: list[ClassInfo] = []
    for base in info.node.bases:
        other = info.module.classes.get(base.id) if isinstance(base, ast.Name) else None
        if other is not None and other is not info:
            found += [other, *_bases(other)]
    return found


def _of_metaclass(info: ClassInfo) -> tuple[str, str] | None:
    """An attribute of a class whose metaclass looks attributes up itself."""
    for keyword in info.node.keywords:
        meta = info.module.classes.get(keyword.value.id) if isinstance(keyword.value, ast.Name) else None
        if keyword.arg == "metaclass" and meta is not None and "__getattribute__" in meta.methods:
            return "GB5458", "attributes of a class whose metaclass has `__getattribute__`"
    return None
