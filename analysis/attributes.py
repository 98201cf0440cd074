"""What a name or an attribute is: module globals, class members, what `__init__` puts on `self`, properties of
tensors."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from graphmend.analysis.annotations import annotated
from graphmend.analysis.definitions import ClassInfo, FunctionInfo, ModuleInfo, dotted, statements_of
from graphmend.analysis.tensor_ops import result
from graphmend.analysis.values import (
    FALSE,
    INT,
    NONE,
    STATIC,
    STR,
    UNKNOWN,
    Choice,
    Class,
    Const,
    Container,
    Function,
    Instance,
    Object,
    Origin,
    Ref,
    Scalar,
    Static,
    Tensor,
    Value,
    join_all,
    options,
    without_none,
)

if TYPE_CHECKING:
    from graphmend.analysis.flow import Walker
    from graphmend.analysis.session import Session

#: classes from outside whose subclasses torch.compile traces as modules
MODULE_ROOTS = frozenset({"torch.nn.Module", "torch.nn.modules.module.Module"})
#: libraries' own base classes, known to derive from torch.nn.Module, for when their source is out of reach
LIBRARY_MODULES = frozenset({"PreTrainedModel", "LightningModule", "ModelMixin", "MessagePassing", "BaseModule"})
_INFINITE = 30
#: a module that re-exports more modules than this by `*` is a library's front door; looking behind all of them costs
#: too much
_MOST_STARS = 12


def named(session: Session, module: ModuleInfo, node: ast.expr) -> Value:
    """The definition that a dotted expression at a module's top level stands for."""
    text = dotted(node)
    if text is None:
        return UNKNOWN
    first, *rest = text.split(".")
    value = global_name(session, module, first)
    for part in rest:
        if isinstance(value, Ref):
            value = session.resolve(f"{value.name}.{part}")
        elif isinstance(value, Class) and part in value.info.classes:
            value = Class(value.info.classes[part])
        else:
            return UNKNOWN
    return value


def global_name(session: Session, module: ModuleInfo, name: str) -> Value:
    """What a name means at a module's top level; a builtin otherwise."""
    cache = module.value_cache
    value = cache.get(name)
    if value is None:
        cache[name] = UNKNOWN  # a definition in a circle
        value = cache[name] = _global(session, module, name)
    return value


def _global(session: Session, module: ModuleInfo, name: str) -> Value:
    if name in module.functions:
        return session.decorated(module.functions[name])
    if name in module.classes:
        return Class(module.classes[name])
    if name in module.imports:
        return session.resolve(module.imports[name])
    if name in module.globals:
        return _global_variable(session, module, name)
    if name in module.annotations:
        return annotated(session, module, module.annotations[name], name, module.name)
    for star in module.stars if len(module.stars) <= _MOST_STARS else ():
        other = session.project.module(star)
        if other is not None and other is not module:
            value = global_name(session, other, name)
            if not (isinstance(value, Ref) and value.name.startswith("builtins.")):
                return value
        elif star.partition(".")[0] == "torch":
            return Ref(f"{star}.{name}")
    if name == "__name__":
        return Const(module.name)
    return Ref(f"builtins.{name}")


def _global_variable(session: Session, module: ModuleInfo, name: str) -> Value:
    expressions = module.globals[name]
    value = join_all(session.evaluate(module, e) for e in expressions[:4])
    if isinstance(value, Const) and (len(expressions) > 1 or session.is_rebound(module, name)):
        return Static(value.type) if value.value is not None else UNKNOWN
    if isinstance(value, Container) and value.kind in ("list", "dict", "set"):
        return (
            Container(value.kind, None, value.element if value.items else value.of, value.fields)
            if value.items != ()
            else Container(value.kind)
        )
    return _from_outside(value, name)


def _from_outside(value: Value, name: str) -> Value:
    """A global tensor enters the graph as an input."""
    if isinstance(value, Tensor):
        origin = Origin("is a Tensor at module level", name, value.origin)
        return Tensor(
            origin, value.rank, value.dtype, value.shape, likely=value.likely, graph_input=True, ndarray=value.ndarray
        )
    return value


# -- classes


def bases(session: Session, info: ClassInfo) -> list[Value]:
    return [named(session, info.module, b) for b in info.node.bases]


def mro(info: ClassInfo, session: Session | None = None) -> list[ClassInfo]:
    """The class and its bases in reach, nearest first: depth first, each once, which is C3 but for rare diamonds."""
    found: list[ClassInfo] = []
    cached = getattr(info, "_mro", None)
    if cached is not None:
        return list(cached)
    if session is None:
        return [info]
    stack = [info]
    while stack and len(found) < _INFINITE:
        cls = stack.pop(0)
        if cls in found:
            continue
        found.append(cls)
        stack = [b.info for b in bases(session, cls) if isinstance(b, Class)] + stack
    info._mro = found  # type: ignore[attr-defined]
    return found


def outside_bases(session: Session, info: ClassInfo) -> list[str]:
    """The qualified names of bases that are out of reach."""
    known = session.outside.get(info)
    if known is None:
        known = [b.name for cls in mro(info, session) for b in bases(session, cls) if isinstance(b, Ref)]
        session.outside[info] = known
    return known


def is_module_class(session: Session, info: ClassInfo) -> bool:
    """Whether a class derives from torch.nn.Module, as far as can be seen."""
    known = session.module_classes.get(info)
    if known is None:
        session.module_classes[info] = False
        known = session.module_classes[info] = any(
            b in MODULE_ROOTS or b.startswith("torch.nn.") or b.rpartition(".")[2] in LIBRARY_MODULES
            for b in outside_bases(session, info)
        )
    return known


def is_config(name: str) -> bool:
    """Whether a class from outside holds configuration, by its name: nothing else is known about it."""
    return name.rpartition(".")[2].endswith(("Config", "Configuration", "Args", "Arguments", "Options", "Namespace"))


def is_config_class(session: Session, info: ClassInfo) -> bool:
    return is_config(info.name) and not is_module_class(session, info)


def record_fields(session: Session, info: ClassInfo) -> Mapping[Any, Value] | None:
    """Of a dataclass or named tuple (a model's output, mostly): its fields; None for any other class."""
    chain = mro(info, session)
    outside = outside_bases(session, info)
    is_record = any(c.is_dataclass() for c in chain) or any(
        b in ("typing.NamedTuple", "typing.TypedDict") for b in outside
    )
    if not is_record or is_module_class(session, info):
        return None
    fields: dict[Any, Value] = {}
    for cls in reversed(chain):
        for name, annotation in cls.annotations.items():
            fields[name] = annotated(session, cls.module, annotation, f"{cls.name}.{name}", cls.qualname)
    return fields


def find_method(session: Session, info: ClassInfo, name: str, after: ClassInfo | None = None) -> FunctionInfo | None:
    """A method by name along the class's bases; with `after`, as `super()` of that class finds it."""
    chain = mro(info, session)
    if after is not None and after in chain:
        chain = chain[chain.index(after) + 1 :]
    return next((c.methods[name] for c in chain if name in c.methods), None)


def instance_attribute(session: Session, info: ClassInfo, name: str) -> Value | None:
    """What `self.name` is, as far as the classes in reach say; None where they do not mention it."""
    if name in info.attribute_cache:
        return info.attribute_cache[name]
    info.attribute_cache[name] = UNKNOWN  # a definition in a circle
    value = None
    for cls in mro(info, session):
        value = _own_attribute(session, info, cls, name)
        if value is not None:
            break
    info.attribute_cache[name] = value
    return value


def _own_attribute(session: Session, info: ClassInfo, cls: ClassInfo, name: str) -> Value | None:
    if name in cls.registered:
        return _registered(session, cls, name)
    if name in cls.assigned:
        values = _values_assigned(session, info, cls, name)
        if values == [FALSE] and not _switched(cls.module, name):
            return FALSE
        return _settled(join_all(values), name)
    if name in cls.annotations:
        value = annotated(session, cls.module, cls.annotations[name], f"{cls.name}.{name}", cls.qualname)
        if value is not UNKNOWN:
            return value
    if name in cls.names:
        return _settled(session.evaluate(cls.module, cls.names[name]), name)
    if name in cls.classes:
        return Class(cls.classes[name])
    return None


def _values_assigned(session: Session, info: ClassInfo, cls: ClassInfo, name: str) -> list[Value]:
    """What the class's methods assign to an attribute; last come those that are computed from its old value."""
    assigned = [(method, expression) for method, _, expression in cls.assigned[name][:4]]
    anew = [a for a in assigned if not _mentions(a[1], name)]
    values = [_assigned(session, info, *a) for a in anew]
    if values and len(anew) < len(assigned):
        info.attribute_cache[name] = join_all(values)
        values += [_assigned(session, info, *a) for a in assigned if a not in anew]
    return values or [UNKNOWN]


def _mentions(expression: ast.expr, attr: str) -> bool:
    if isinstance(expression, (ast.Constant, ast.Name)):
        return False
    return any(isinstance(n, ast.Attribute) and n.attr == attr for n in ast.walk(expression))


def _switched(module: ModuleInfo, name: str) -> bool:
    """Whether a module's text gives any object's attribute `name` another value than False."""
    if module.switched is None:
        given = Counter(_SWITCH.findall(module.source.text))
        given.subtract(attr for attr in _idle_setters(module))
        module.switched = {attr for attr, times in given.items() if times > 0}
    return name in module.switched


def _idle_setters(module: ModuleInfo) -> Iterator[str]:
    """The attributes that a function sets to a parameter of its own, False by default, where nothing in sight calls it:
    `def _set_gradient_checkpointing(self, module, value=False): module.gradient_checkpointing = value`."""
    for info in (*module.functions.values(), *(m for c in module.classes.values() for m in c.methods.values())):
        off = {n for n, d in info.defaults.items() if isinstance(d, ast.Constant) and d.value is False}
        for statement in statements_of(info.node.body) if off and not isinstance(info.node, ast.Lambda) else ():
            if not (isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Name)):
                continue
            target = statement.targets[0]
            sets = statement.value.id in off and isinstance(target, ast.Attribute)
            if sets and len(re.findall(rf"\b{info.name}\b", module.source.text)) == 1:
                assert isinstance(target, ast.Attribute)
                module.idle.add(info.name)
                yield target.attr


_SWITCH = re.compile(r"\.(\w+)\s*=(?!=|\s*False\b)")


def _settled(value: Value, name: str) -> Value:
    """What an attribute is worth to a method: anyone may have set a flag since, so constants are not folded."""
    if isinstance(value, Const):
        return UNKNOWN if value.value is None else Static(value.type)
    if isinstance(value, Choice) and NONE in value.options:
        return join_all(
            [*(o if not isinstance(o, Const) else Static(o.type) for o in value.options if o is not NONE), NONE]
        )
    if isinstance(value, Tensor):
        origin = Origin("is a Tensor attribute", f"self.{name}", value.origin)
        shape = value.shape if value.shape is not None else ("shape", name)
        dtype = value.dtype if value.dtype is not None else ("dtype", name)
        return Tensor(origin, value.rank, dtype, shape, likely=value.likely, graph_input=True, ndarray=value.ndarray)
    if isinstance(value, Container) and value.kind in ("list", "dict", "set"):
        return (
            Container(value.kind, None, value.element if value.items else value.of, value.fields)
            if value.items != ()
            else Container(value.kind)
        )
    return value


def _registered(session: Session, cls: ClassInfo, name: str) -> Value:
    how, method, call = cls.registered[name]
    if how in ("add_module", "register_module"):
        return _assigned(session, cls, method, call.args[1]) if len(call.args) > 1 else UNKNOWN
    given = (
        call.args[1]
        if len(call.args) > 1
        else next((k.value for k in call.keywords if k.arg in ("tensor", "param")), None)
    )
    value = _assigned(session, cls, method, given) if given is not None else UNKNOWN
    says = "is a buffer, so a Tensor" if how == "register_buffer" else "is a parameter, so a Tensor"
    known = value if isinstance(value, Tensor) else None
    tensor = Tensor(
        Origin(says, f"self.{name}"),
        known.rank if known else None,
        known.dtype if known and known.dtype is not None else ("dtype", name),
        known.shape if known and known.shape is not None else ("shape", name),
        graph_input=True,
    )
    if value is NONE:
        return join_all([tensor, NONE]) if name in cls.assigned or _switched(cls.module, name) else NONE
    return tensor


def _assigned(session: Session, info: ClassInfo, method: FunctionInfo, expression: ast.expr) -> Value:
    """The value of an expression in a method, read without walking it: locals are looked up when asked for."""
    if session.depth > 8:
        return UNKNOWN
    return session.read(session.reader(method, Instance(info)), expression)


# -- attributes of values

_RETURN_KINDS: dict[str, Value] = {
    "int": INT, "float": Static("float"), "bool": Static("bool"), "number": STATIC, "str": STR,
    "dtype": Static("dtype"), "device": Static("device"), "layout": Static("layout"), "size": Static("size"),
    "none": NONE,
}  # fmt: skip


def attribute(w: Walker, value: Value, name: str, node: ast.AST) -> Value:
    """`value.name`."""
    if isinstance(value, Tensor):
        return _tensor_attribute(w, value, name, node)
    if isinstance(value, Ref):
        return w.session.resolve(f"{value.name}.{name}")
    if isinstance(value, Instance):
        return _instance_member(w, value, name, node)
    if isinstance(value, Choice):
        return join_all(attribute(w, o, name, node) for o in options(without_none(value)))
    if isinstance(value, Static):
        return STATIC if value is not NONE else UNKNOWN
    if isinstance(value, Container):
        if value.fields is not None and name in value.fields and value.kind != "dict":
            return value.fields[name]
        return Method(value, name)
    if isinstance(value, Object):
        return w.session.object_attribute(value, name, node)
    if isinstance(value, Class):
        return _class_member(w, value, name)
    if isinstance(value, Super):
        found = find_method(w.session, value.info, name, after=value.after)
        return (
            Function(found, bound=None if found.is_static else value.receiver)
            if found is not None
            else Method(value, name)
        )
    if isinstance(value, Scalar):
        return Method(value, name)
    return UNKNOWN


class Method(Value):
    """A method of a value that has no body in reach."""

    __slots__ = ("name", "receiver")

    def __init__(self, receiver: Value, name: str) -> None:
        self.receiver = receiver
        self.name = name

    @property
    def key(self) -> Any:
        return ("method", self.receiver.key, self.name)


class Super(Value):
    """`super()` in a method of `after`, for an instance of `info`."""

    __slots__ = ("after", "info", "receiver")

    def __init__(self, info: ClassInfo, after: ClassInfo, receiver: Value) -> None:
        self.info = info
        self.after = after
        self.receiver = receiver

    @property
    def key(self) -> Any:
        return ("super", id(self.info), id(self.after))


def _tensor_attribute(w: Walker, value: Tensor, name: str, node: ast.AST) -> Value:
    if name == "shape":
        return Container("tuple", (INT,) * value.rank) if value.rank is not None else Static("size")
    known = w.session.torch.attribute(name)
    if known is None:
        return Method(value, name)
    if known.is_tensor or known.kind == "union":
        if name in ("data", "real", "imag", "T", "mT", "H", "mH"):
            same = name in ("data",)
            dtype = value.dtype if name not in ("real", "imag") else None
            return result(value, node, rank=value.rank, dtype=dtype, shape=value.shape if same else None)
        return result(value, node) if known.is_tensor else UNKNOWN
    return _RETURN_KINDS.get(known.kind, STATIC if known.kind == "?" else UNKNOWN)


def _instance_member(w: Walker, value: Instance, name: str, node: ast.AST) -> Value:
    session = w.session
    info = value.info
    if name == "training":
        return Static("bool")
    method = find_method(session, info, name)
    own = instance_attribute(session, info, name)
    if method is not None and (own is None or not any(name in c.assigned for c in mro(info, session))):
        if method.is_property:
            return session.enter(Function(method, bound=value), (), {}, w, node)
        if method.is_static:
            return Function(method)
        return session.decorated(method, bound=Class(info) if method.is_classmethod else value)
    if own is not None:
        return own
    if name == "__class__":
        return Class(info)
    if name == "config":
        return STATIC
    if is_module_class(session, info):
        return session.object_attribute(Object("torch.nn.Module"), name, node)
    return UNKNOWN


def _class_member(w: Walker, value: Class, name: str) -> Value:
    method = find_method(w.session, value.info, name)
    if method is not None:
        return Function(method, bound=value if method.is_classmethod else None)
    found = instance_attribute(w.session, value.info, name)
    if found is not None:
        return found
    for base in outside_bases(w.session, value.info):
        if base.startswith("torch.autograd.") and name == "apply":
            forward = find_method(w.session, value.info, "forward")
            takes_context = find_method(w.session, value.info, "setup_context") is None
            return (
                Function(forward, bound=Object("torch.autograd.function.FunctionCtx") if takes_context else None)
                if forward
                else UNKNOWN
            )
        if base.startswith("enum."):
            return STATIC
    return UNKNOWN


def call_method(
    w: Walker, value: Instance, name: str, args: tuple[Value, ...], keywords: Mapping[str, Value], node: ast.AST
) -> Value:
    """`value.name(...)` for a method in reach; UNKNOWN where there is none."""
    method = find_method(w.session, value.info, name)
    if method is None:
        return UNKNOWN
    return w.session.enter(Function(method, bound=value), args, keywords, w, node)
