"""Transfer functions of attribute access: members of modules and classes, attributes of instances, properties of
tensors; and calls of methods by name."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from graphmend.analysis.driver.frameworks import HOOKS, PLAIN_VALUES
from graphmend.analysis.interpreter.events import Error, Operation
from graphmend.analysis.interpreter.operations import autograd_functions, own_objects
from graphmend.analysis.interpreter.operations.loads import loaded
from graphmend.analysis.interpreter.operations.objects import used
from graphmend.analysis.lattice.arguments import Arguments, Keywords
from graphmend.analysis.lattice.evidence import Evidence
from graphmend.analysis.lattice.external import ExternalInstance, ExternalName, Intrinsic
from graphmend.analysis.lattice.values import (
    FALSE,
    INT,
    NONE,
    STATIC,
    STR,
    UNKNOWN,
    Choice,
    Container,
    MarkedTensor,
    Scalar,
    Static,
    Tensor,
    Value,
    join,
    join_all,
    options,
    without_none,
)
from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo
from graphmend.analysis.program.entities import Class, Function, Instance, Method, Record, Super
from graphmend.analysis.resolution.classes import (
    AUTOGRAD_CONTEXT,
    find_method,
    is_module_class,
    mro,
    outside_bases,
)
from graphmend.analysis.resolution.instance_attributes import instance_attribute
from graphmend.analysis.resolution.names import resolve
from graphmend.analysis.resolution.tensor_usage import is_tensor_only
from graphmend.analysis.syntax.nodes import names_in
from graphmend.analysis.tensors import distributions
from graphmend.analysis.tensors.operations import result
from graphmend.analysis.tensors.return_types import PYTHON_RESULTS
from graphmend.analysis.torch_facts.members import ATTRIBUTES, NO_SUCH
from graphmend.analysis.torch_facts.objects import UNTRACED_ATTRIBUTES

if TYPE_CHECKING:
    from graphmend.analysis.interpreter.interface import Host, Walk


# -- attributes of values


def attribute(w: Walk, value: Value, name: str, node: ast.AST) -> Value:
    """`value.name`."""
    if name == "__dict__" and (value is UNKNOWN or isinstance(value, Instance)):
        return Method(value, name)
    if isinstance(value, Tensor):
        return _tensor_attribute(w, value, name, node)
    if isinstance(value, ExternalName):
        known = ATTRIBUTES.get(value.name)
        if known is not None and name not in known and isinstance(node, ast.expr) and not name.startswith("_"):
            w.emit(Error, node, "GB7685", f"{value.name} has no `{name}`")
        return resolve(w.session, f"{value.name}.{name}")
    if isinstance(value, Instance):
        return _instance_member(w, value, name, node)
    if isinstance(value, Choice):
        return join_all(attribute(w, o, name, node) for o in options(without_none(value)))
    if isinstance(value, Static):
        return STATIC if value is not NONE else UNKNOWN
    if isinstance(value, Container):
        if value.fields is not None and name in value.fields and value.kind != "dict":
            return value.fields[name]
        return _record_member(w, value, name, node) if isinstance(value, Record) else Method(value, name)
    if isinstance(value, ExternalInstance):
        if name == "tb_lasti":
            used(w, node, f".{name}", value)
        known = ATTRIBUTES.get(value.cls)
        if known is not None and name not in known and isinstance(node, ast.expr) and not name.startswith("_"):
            w.emit(Error, node, NO_SUCH[value.cls], f"{value.cls} has no `{name}`")
        return distributions.attribute(value, name, node) or _object_member(value, name, node)
    if isinstance(value, Class):
        return _class_member(w, value, name, node)
    if isinstance(value, Super):
        found = find_method(w.session, value.info, name, after=value.after)
        return (
            Function(found, bound=None if found.is_static else value.receiver)
            if found is not None
            else Method(value, name)
        )
    if isinstance(value, Scalar):
        return Method(value, name)
    if isinstance(value, Function) and name in _OF_FUNCTIONS and isinstance(node, ast.expr):
        w.emit(Operation, node, f".{name}", value)
    if isinstance(value, Function) and name == "__get__":
        return Intrinsic("__get__", partial(_descended, value), (value,))
    if value is UNKNOWN and name == "flatten_parameters":
        layer = ExternalInstance("torch.nn.RNNBase")  # no other module has that
        if isinstance(node, ast.Attribute):
            loaded(w, node.value, layer)
        return Method(layer, name)
    if value is UNKNOWN and name == "mark_dirty":
        return Method(ExternalInstance(AUTOGRAD_CONTEXT), name)  # nothing else has that
    if value is UNKNOWN and is_tensor_only(w.session, name):
        origin = Evidence(f"is used as a Tensor: .{name}", node.value if isinstance(node, ast.Attribute) else node)
        return _tensor_attribute(w, Tensor(origin, likely=True), name, node)
    return UNKNOWN


#: attributes of functions that Dynamo does not read; the former two those under `functools.lru_cache` have
_OF_FUNCTIONS = frozenset({"cache_clear", "cache_info", "__qualname__"})
#: what a tensor that is traced never is: those that are end the graph when they enter it (torch 2.13)
_NEVER = frozenset({"is_sparse", "is_sparse_csr", "is_quantized"})


def _descended(function: Function, w: Walk, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    """`function.__get__(instance)`."""
    return Function(function.info, bound=args[0], closure=function.closure) if args else UNKNOWN


def _tensor_attribute(w: Walk, value: Tensor, name: str, node: ast.AST) -> Value:
    if isinstance(value, MarkedTensor) and isinstance(node, ast.expr) and value.mark("class") is not None:
        w.emit(Operation, node, f"subclass.{name}", value)
    if name == "shape":
        return Container("tuple", (INT,) * value.rank) if value.rank is not None else Static("size")
    if name in _NEVER:
        return FALSE
    if isinstance(node, ast.expr) and name in UNTRACED_ATTRIBUTES["ndarray" if value.ndarray else "tensor"]:
        w.emit(Operation, node, f".{name}", value)
    known = w.session.torch.attribute(name)
    if known is None:
        return Method(value, name)
    if known.is_tensor or known.kind == "union":
        if name in ("data", "real", "imag", "T", "mT", "H", "mH"):
            same = name in ("data",)
            dtype = value.dtype if name not in ("real", "imag") else None
            return result(value, node, rank=value.rank, dtype=dtype, shape=value.shape if same else None)
        return result(value, node) if known.is_tensor else UNKNOWN
    return PYTHON_RESULTS.get(known.kind, STATIC if known.kind == "?" else UNKNOWN)


#: methods of records, a model's outputs mostly, that need no reading
_RECORD_METHODS = frozenset("to_tuple keys values items get pop update copy _replace _asdict".split())


def _record_member(w: Walk, value: Record, name: str, node: ast.AST) -> Value:
    """A member of a dataclass or named tuple that is not one of its fields."""
    method = find_method(w.session, value.info, name) if name not in _RECORD_METHODS else None
    if method is None:
        return Method(value, name)
    if method.is_property:
        return w.session.enter(Function(method, bound=value), (), {}, w, node)
    return _bound(w.session, method, value, value.info)


#: UNKNOWN, a Python value, or one of several: what an attribute may be that an argument of the constructor decides
_MAY_BE_OPTION = (UNKNOWN.__class__, Static, Choice)


def _instance_member(w: Walk, value: Instance, name: str, node: ast.AST) -> Value:
    session = w.session
    info = value.info
    if name == "training":
        return Static("bool")
    own_objects.member(w, node, value, name)
    if value.given and (given := _given(session, value, name)) is not None:
        return given
    method = find_method(session, info, name)
    own = instance_attribute(session, info, name)
    if (
        isinstance(own, _MAY_BE_OPTION)
        and (option := session.driven_attribute(info, name, for_good=True)) is not UNKNOWN
    ):
        return option
    if (own is None or own is UNKNOWN or isinstance(own, (ExternalInstance, Container))) and (
        made := session.driven_attribute(info, name)
    ) is not UNKNOWN:
        return made
    assigners = {a[0].name for c in mro(info, session) for a in c.assigned.get(name, ())} if method is not None else ()
    if method is not None and (own is None or not assigners):
        if method.is_property:
            return session.enter(Function(method, bound=value), (), {}, w, node)
        return _bound(session, method, value, info)
    if method is not None and own is not None and "__init__" not in assigners and not method.is_property:
        return join(
            _bound(session, method, value, info), own
        )  # whether what assigns over the method has run is not known
    if own is not None:
        return own
    if name == "__class__":
        return Class(info)
    if name == "config":
        return STATIC
    if "__getattr__" in info.names and isinstance(node, ast.expr):
        w.emit(Operation, node, "__getattr__", value)
    if is_module_class(session, info):
        return _object_member(ExternalInstance("torch.nn.Module"), name, node)
    return UNKNOWN


def _bound(session: Host, method: FunctionInfo, receiver: Value, info: ClassInfo) -> Value:
    """A method as attribute of an instance: bound to it, or to its class for a class method."""
    if method.is_static:
        return Function(method)
    return session.decorated(method, bound=Class(info) if method.is_classmethod else receiver)


def _given(session: Host, value: Instance, name: str) -> Value | None:
    """The value of an attribute that only `__init__` sets, to one of its arguments or to what it passes one on to."""
    assert value.given is not None
    session.note_attribute_read(value.info, name)
    assigned = [a for cls in mro(value.info, session) for a in cls.assigned.get(name, ())]
    if len(assigned) != 1:
        return None
    ((method, _, expression),) = assigned
    if method.name != "__init__":
        return None
    if isinstance(expression, ast.Name):
        return value.given.get(expression.id)
    passed_on = isinstance(expression, ast.Call) and not value.given.keys().isdisjoint(names_in(expression))
    return session.reading.evaluate_for(method, value, expression) if passed_on else None


def _class_member(w: Walk, value: Class, name: str, node: ast.AST) -> Value:
    if name == "mro" and isinstance(node, ast.expr):
        w.emit(Operation, node, ".mro", value)
    if value.info.node.keywords and isinstance(node, ast.expr):
        w.emit(Operation, node, "metaclass", value)
    if isinstance(node, ast.expr) and isinstance(made := value.info.names.get(name), ast.Call):
        _described(w, value, made, node)
    method = find_method(w.session, value.info, name)
    if method is not None and autograd_functions.is_plain_method(w, value, method):
        return autograd_functions.method_of(value, method)
    if method is not None:
        return Function(method, bound=value if method.is_classmethod else None)
    bases = outside_bases(w.session, value.info)
    if name in value.info.names and "enum.Enum" in bases and not PLAIN_VALUES.intersection(bases):
        return STATIC  # a member is no number, also where its value is one
    found = instance_attribute(w.session, value.info, name)
    if found is not None:
        return found
    for base in bases:
        if base.startswith("torch.autograd.") and name == "apply":
            return autograd_functions.apply_of(value)
        if base.startswith("enum."):
            return STATIC
    return UNKNOWN


_OPAQUE_BASE = "torch._library.opaque_object.OpaqueBase"


def _described(w: Walk, value: Class, made: ast.Call, node: ast.expr) -> None:
    """Tells the rules of a descriptor of the program's own in a class that the graph takes as a whole."""
    descriptor = value.info.module.classes.get(made.func.id) if isinstance(made.func, ast.Name) else None
    is_one = descriptor is not None and "__get__" in descriptor.methods
    if is_one and _OPAQUE_BASE in outside_bases(w.session, value.info):
        w.emit(Operation, node, "descriptor", value)


def call_method(w: Walk, value: Instance, name: str, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    """`value.name(...)` for a method whose source is available; UNKNOWN without one."""
    method = find_method(w.session, value.info, name)
    if method is None:
        return UNKNOWN
    return w.session.enter(Function(method, bound=value), args, keywords, w, node)


_MODULE_METHODS = frozenset(
    "parameters named_parameters buffers named_buffers children named_children modules named_modules apply to cuda "
    "cpu float half double bfloat16 train eval requires_grad_ zero_grad state_dict load_state_dict register_buffer "
    "register_parameter register_forward_hook register_forward_pre_hook register_full_backward_hook "
    "register_backward_hook add_module register_module get_submodule get_parameter get_buffer type share_memory "
    "compile extra_repr".split()
)


def _object_member(value: ExternalInstance, name: str, node: ast.AST) -> Value:
    """An attribute of an instance of a class without available source."""
    cls = value.cls
    if name == "__traceback__":
        return ExternalInstance("types.TracebackType")
    if cls == AUTOGRAD_CONTEXT and (shared := autograd_functions.context_member(name, node)) is not None:
        return shared
    if cls in ("torch.finfo", "torch.iinfo"):
        return STR if name == "dtype" else INT if name == "bits" or cls == "torch.iinfo" else Static("float")
    if cls.startswith("torch.nn."):
        if name in HOOKS:
            return Method(ExternalInstance("torch.nn.Module", made_inside=value.made_inside), name)
        if name in ("weight", "bias", "in_proj_weight", "in_proj_bias", "running_mean", "running_var"):
            origin = Evidence("is a parameter of a module, so a Tensor", node)
            return Tensor(origin, None, "float", graph_input=True)
        if name == "training":
            return Static("bool")
        if cls != "torch.nn.Module" and name in (
            "in_features",
            "out_features",
            "padding",
            "stride",
            "kernel_size",
            "p",
            "eps",
            "padding_idx",
        ):
            return Static()
        if cls == "torch.nn.Module" and name not in _MODULE_METHODS:
            return UNKNOWN
        if cls == "torch.nn.Module":
            return Method(value, name)
    return Method(value, name)
