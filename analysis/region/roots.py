"""Roots: the functions at which tracing starts. Those that driver code compiles, those that the settings name, and the
methods that torch calls of modules, autograd functions and distributions of which neither is known."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphmend.analysis.driver.driven import Driven
from graphmend.analysis.lattice.evidence import Evidence
from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import UNKNOWN, Container, Tensor, Value, tensor_in
from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo, ModuleInfo
from graphmend.analysis.program.entities import Class, Function, Instance
from graphmend.analysis.region.asked import ask
from graphmend.analysis.region.compiled_roots import compiled_roots
from graphmend.analysis.region.dynamo_config import decorated_mode, tracing_mode_of_program
from graphmend.analysis.region.mode import DEFAULT
from graphmend.analysis.region.offered_roots import UNTRACED, offered_roots
from graphmend.analysis.region.region import Region, Root
from graphmend.analysis.resolution.classes import (
    AUTOGRAD_CONTEXT,
    find_method,
    is_autograd_function,
    is_module_class,
    mro,
    outside_bases,
)
from graphmend.analysis.resolution.parameters import declared
from graphmend.analysis.syntax.nodes import statements_of
from graphmend.analysis.syntax.traversal import walk

if TYPE_CHECKING:
    from graphmend.analysis.resolution.interface import ProgramView


def roots(session: ProgramView, module: ModuleInfo, driven: Driven | None) -> list[Root]:
    """All roots in a module, compiled ones first. `driven` is what its driver code compiles."""
    if tracing_mode_of_program(module, None) is None:
        return []
    found = list(compiled_roots(session, driven)) if driven is not None else []
    covered = {r.function.info for r in found}
    found += [r for r in _named(session, module) if r.function.info not in covered]
    if session.settings.assume_compiled != "never":
        covered = {r.function.info for r in found}
        assumed = [*_forwards(session, module), *_without_forward(session, module)]
        assumed += [*_differentiated(session, module), *_densities(session, module), *offered_roots(session, module)]
        found += [r for r in assumed if r.function.info not in covered]
    return found


def _named(session: ProgramView, module: ModuleInfo) -> Iterator[Root]:
    """The roots that the settings name."""
    for name in session.settings.compiled:
        head, _, method = name.partition(".")
        value = session.reading.evaluate_in(module, None, ast.Name(head, ast.Load()))
        if method:
            receiver = Instance(value.info) if isinstance(value, Class) else value
            info = find_method(session, receiver.info, method) if isinstance(receiver, Instance) else None
            value = Function(info, bound=receiver) if info is not None else UNKNOWN
        for function in _targets(session, value):
            mode = decorated_mode(DEFAULT, function.info.module, function.info.decorators)
            region = Region("compiled", f"{name} is named as compiled", None, mode)
            yield Root(function, region, session.reading.examples(function))


def _targets(session: ProgramView, value: Value) -> Iterator[Function]:
    """The functions that are traced where a value is compiled."""
    if isinstance(value, Function):
        yield value
    elif isinstance(value, Instance):
        forward = find_method(session, value.info, "__call__") or find_method(session, value.info, "forward")
        if forward is not None:
            yield Function(forward, bound=value)
    elif isinstance(value, Class):
        forward = find_method(session, value.info, "forward")
        if forward is not None:
            yield Function(forward, bound=Instance(value.info))
    elif isinstance(value, Container):
        for item in value.items if value.items is not None else (value.element,):
            yield from _targets(session, item)


def _forwards(session: ProgramView, module: ModuleInfo) -> Iterator[Root]:
    """The `forward` of each module class; an inherited one too, where the class overrides what it calls."""
    for cls in module.classes.values():
        if not is_module_class(session, cls):
            continue
        forward = cls.methods.get("forward")
        if forward is None and cls.methods.keys() - {"__init__"}:
            forward = find_method(session, cls, "forward")
        if forward is None or _untraced(forward):
            continue
        evidence = f"{cls.name} is a torch.nn.Module; its forward is assumed to be compiled"
        called = find_method(session, cls, "__call__")  # in place of torch.nn.Module's, which calls `forward`
        yield Root(Function(called or forward, bound=Instance(cls)), Region("assumed", evidence, None))


def _without_forward(session: ProgramView, module: ModuleInfo) -> Iterator[Root]:
    """The public methods that compute with tensors of each module class that cannot be called: splines, manifolds,
    flows. Inherited ones too, where the class overrides what they call; not those of a mixin, where a class that
    derives from it has a forward, which says what is traced."""
    mixins = {base for cls in module.classes.values() if _has_forward(session, cls) for base in mro(cls, session)}
    for cls in module.classes.values():
        if cls in mixins or not cannot_be_called(session, cls):
            continue
        evidence = f"{cls.name} is a torch.nn.Module without forward; its methods are assumed to be compiled"
        methods = {name: info for one in reversed(mro(cls, session)) for name, info in one.methods.items()}
        for name, method in methods.items():
            if name.startswith("_") or method.is_static or method.is_classmethod or method.is_property:
                continue
            if method.owner is not cls and cls.methods.keys().isdisjoint(ask(session, method, _reads_of_receiver)):
                continue
            computes = ask(session, method, _gives_something) and ask(session, method, _takes_tensor)
            if not computes or _untraced(method):
                continue
            yield Root(Function(method, bound=Instance(cls)), Region("assumed", evidence, None))


def cannot_be_called(session: ProgramView, cls: ClassInfo) -> bool:
    """Whether a class is a torch.nn.Module without forward. Which of its methods are roots, their bodies tell."""
    if not is_module_class(session, cls) or set(outside_bases(session, cls)) - _ABSTRACT:
        return False
    return not _has_forward(session, cls)


def _has_forward(session: ProgramView, cls: ClassInfo) -> bool:
    return any(find_method(session, cls, name) is not None for name in ("forward", "__call__"))


def _gives_something(session: ProgramView, method: FunctionInfo) -> bool:
    """Whether a method has a result: those that only meter, plot or save have none, and run outside of models."""
    node = method.node
    if isinstance(node, ast.Lambda) or (node.returns is not None and _is_none(node.returns)):
        return False
    return any(isinstance(n, ast.Return) and not _is_none(n.value) for n in statements_of(node.body))


def _is_none(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value is None)


def _takes_tensor(session: ProgramView, method: FunctionInfo) -> bool:
    taken = (*method.parameters[1:], *method.node.args.kwonlyargs)
    return any(tensor_in(declared(session, method, p)) is not None for p in taken)


def _reads_of_receiver(session: ProgramView, method: FunctionInfo) -> frozenset[str]:
    """The attributes that a method reads of its receiver."""
    receiver = method.parameters[0].arg if method.parameters else None
    return frozenset(
        n.attr
        for n in walk(method.node)
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == receiver
    )


def _differentiated(session: ProgramView, module: ModuleInfo) -> Iterator[Root]:
    """The `forward` and `backward` of each autograd function: modules call them, by `apply`, wherever these stand."""
    for cls in module.classes.values():
        if not is_autograd_function(session, cls):
            continue
        context = ExternalInstance(AUTOGRAD_CONTEXT, made_inside=True)
        without = find_method(session, cls, "setup_context") is not None
        for name in ("forward", "backward"):
            method = cls.methods.get(name)
            if method is None or not method.is_static or not method.parameters or _untraced(method):
                continue
            evidence = f"{cls.name} is a torch.autograd.Function; its {name} is assumed to be compiled"
            region = Region("assumed", evidence, None)
            if name == "forward":
                yield Root(Function(method, bound=None if without else context), region)
            else:
                says = Evidence("is a gradient, so a Tensor", "grad")
                gradients = tuple(Tensor(says, graph_input=True) for _ in method.parameters[1:])
                yield Root(Function(method, bound=context), region, gradients)


#: bases from which a module class inherits no forward
_ABSTRACT = frozenset({"torch.nn.Module", "torch.nn.modules.module.Module", "abc.ABC", "typing.Generic"})

#: the methods of distributions and their transforms through which gradients flow, and how many tensors each takes
_OF_DISTRIBUTIONS = {
    "log_prob": 1, "cdf": 1, "icdf": 1, "rsample": 0, "entropy": 0,
    "_call": 1, "_inverse": 1, "log_abs_det_jacobian": 2,
}  # fmt: skip


def _densities(session: ProgramView, module: ModuleInfo) -> Iterator[Root]:
    """The methods of each distribution and each of their transforms that losses and models compute with."""
    for cls in module.classes.values():
        if cls.methods.keys().isdisjoint(_OF_DISTRIBUTIONS) or is_module_class(session, cls):
            continue
        if not any(base.startswith("torch.distributions.") for base in outside_bases(session, cls)):
            continue
        for name, count in _OF_DISTRIBUTIONS.items():
            method = cls.methods.get(name)
            if method is None or method.is_static or method.is_classmethod or method.is_property or _untraced(method):
                continue
            evidence = f"{cls.name} is one of torch.distributions; its {name} is assumed to be compiled"
            says = Evidence("is what a distribution computes with, so a Tensor", name)
            taken = tuple(Tensor(says, graph_input=True) for _ in range(count))
            yield Root(Function(method, bound=Instance(cls)), Region("assumed", evidence, None), taken)


def _untraced(info: FunctionInfo) -> bool:
    return info.decorated_with(*UNTRACED)
