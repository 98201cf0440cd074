"""Values from type annotations."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from graphmend.analysis.lattice.evidence import DeclaredEvidence
from graphmend.analysis.lattice.external import ExternalInstance, ExternalName
from graphmend.analysis.lattice.values import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    STATIC,
    STR,
    UNKNOWN,
    Container,
    Static,
    Tensor,
    Value,
    join_all,
)
from graphmend.analysis.program.definitions import ClassInfo
from graphmend.analysis.program.entities import Class, Instance, Record
from graphmend.analysis.resolution.classes import is_config, is_config_class, is_module_class, mro, outside_bases
from graphmend.analysis.resolution.names import alias_of, named

if TYPE_CHECKING:
    from graphmend.analysis.program.definitions import ModuleInfo
    from graphmend.analysis.resolution.interface import ProgramView


_TENSORS = {
    "torch.Tensor": None, "torch.FloatTensor": "float32", "torch.LongTensor": "int64", "torch.IntTensor": "int32",
    "torch.BoolTensor": "bool", "torch.HalfTensor": "float16", "torch.DoubleTensor": "float64",
    "torch.BFloat16Tensor": "bfloat16", "torch.ByteTensor": "uint8", "torch.cuda.FloatTensor": "float32",
    "torch.cuda.LongTensor": "int64", "torch.nn.Parameter": None, "torch.nn.parameter.Parameter": None,
    "torch.nn.Buffer": None, "torch.autograd.Variable": None, "torch._tensor.Tensor": None,
}  # fmt: skip
_PLAIN = {
    "builtins.int": INT, "builtins.float": FLOAT, "builtins.bool": BOOL, "builtins.str": STR,
    "builtins.bytes": Static("bytes"), "builtins.complex": Static("complex"), "torch.Size": Static("size"),
    "torch.dtype": Static("dtype"), "torch.device": Static("device"), "torch.layout": Static("layout"),
    "torch.types.Device": Static("device"), "builtins.range": Static("range"), "builtins.type": STATIC,
    "torch.SymInt": INT, "torch.types.Number": STATIC, "numbers.Number": STATIC,
}  # fmt: skip
_SEQUENCES = {
    "builtins.list": "list", "typing.List": "list", "builtins.tuple": "tuple", "typing.Tuple": "tuple",
    "builtins.set": "set", "typing.Set": "set", "typing.Sequence": "list", "typing.Iterable": "generator",
    "typing.Iterator": "generator", "collections.abc.Sequence": "list", "collections.abc.Iterable": "generator",
    "collections.abc.Iterator": "generator", "typing.Generator": "generator",
    "collections.abc.Generator": "generator", "typing.Collection": "list", "collections.deque": "list",
    "typing.Deque": "list", "builtins.frozenset": "set", "typing.FrozenSet": "set",
}  # fmt: skip
_MAPPINGS = frozenset(
    "builtins.dict typing.Dict typing.Mapping typing.MutableMapping collections.abc.Mapping collections.OrderedDict "
    "typing.OrderedDict collections.defaultdict typing.DefaultDict".split()
)
_JAXTYPING = {
    "Float": "float", "Float16": "float16", "Float32": "float32", "Float64": "float64", "BFloat16": "bfloat16",
    "Int": "int", "Int8": "int8", "Int16": "int16", "Int32": "int32", "Int64": "int64", "UInt8": "uint8",
    "Integer": "int", "Bool": "bool", "Complex": "complex", "Num": None, "Shaped": None, "Inexact": None,
    "Real": None,
}  # fmt: skip


def annotated(
    session: ProgramView,
    module: ModuleInfo,
    node: ast.expr | None,
    name: str,
    where: str,
    within: frozenset[ClassInfo] = frozenset(),
) -> Value:
    """The value that an annotation declares; UNKNOWN without one. `name` and `where` go into the evidence. `within` are
    the records whose fields are being read.
    """
    if node is None:
        return UNKNOWN
    reader = _Reader(session, module, name, where, within)
    try:
        return reader.read(node)
    except RecursionError:
        return UNKNOWN


class _Reader:
    def __init__(
        self, session: ProgramView, module: ModuleInfo, name: str, where: str, within: frozenset[ClassInfo]
    ) -> None:
        self.within = within
        self.session = session
        self.module = module
        self.name = name
        self.where = where
        self.depth = 0

    def read(self, node: ast.expr) -> Value:
        self.depth += 1
        if self.depth > 40:
            return UNKNOWN
        if isinstance(node, ast.Constant):
            if node.value is None:
                return NONE
            if isinstance(node.value, str):
                return self._text(node.value)
            return UNKNOWN
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return join_all([self.read(node.left), self.read(node.right)])
        if isinstance(node, ast.Subscript):
            return self._generic(node)
        return self._plain(node)

    def _text(self, text: str) -> Value:
        try:
            return self.read(ast.parse(text.strip(), mode="eval").body)
        except (SyntaxError, ValueError):
            return UNKNOWN

    def tensor(self, dtype: str | None, rank: int | None = None) -> Tensor:
        says = f"is annotated as a Tensor in {self.where}"
        token = (self.name, self.where)
        return Tensor(
            DeclaredEvidence(says, self.name, (self.module.name, self.where)),
            rank,
            dtype or ("dtype", *token),
            () if rank == 0 else ("shape", *token),
            graph_input=True,
        )

    def _plain(self, node: ast.expr) -> Value:
        target = named(self.session, self.module, node)
        if isinstance(target, Class):
            return self._class(target)
        if not isinstance(target, ExternalName):
            alias = alias_of(self.session, self.module, node)
            return self.elsewhere(*alias) if alias is not None else UNKNOWN
        name = target.name
        if name in _TENSORS:
            return self.tensor(_TENSORS[name])
        if name == "numpy.ndarray":
            value = self.tensor(None)
            return Tensor(value.origin, None, value.dtype, value.shape, ndarray=True, graph_input=True)
        if name in _PLAIN:
            return _PLAIN[name]
        if name in _SEQUENCES:
            return Container(_SEQUENCES[name])
        if name in _MAPPINGS:
            return Container("dict")
        if name in ("typing.Any", "builtins.object"):
            return UNKNOWN
        if is_config(name):
            return STATIC
        last = name.rpartition(".")[2]
        return ExternalInstance(name) if last[:1].isupper() and not name.startswith("typing.") else UNKNOWN

    def elsewhere(self, module: ModuleInfo, node: ast.expr) -> Value:
        """What an expression of another module, or of this one's top level, declares."""
        outer, self.module = self.module, module
        try:
            return self.read(node)
        finally:
            self.module = outer

    def _class(self, target: Class) -> Value:
        info = target.info
        if is_config_class(self.session, info):
            return STATIC
        if info in self.within:
            return Instance(info)  # a tree of records, whose inner ones are as deep as it happens to be
        fields = record_fields(self.session, info, self.within)
        if fields is not None:
            return record(self.session, info, fields)
        return Instance(info)

    def _generic(self, node: ast.Subscript) -> Value:
        base = self.module.qualified(node.value) or ""
        arguments = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        last = base.rpartition(".")[2]
        if last == "Optional":
            return join_all([self.read(arguments[0]), NONE])
        if last == "Union":
            return join_all([self.read(a) for a in arguments])
        if last in ("Annotated", "Final", "ClassVar", "Required", "NotRequired", "Unpack"):
            return self.read(arguments[0]) if last != "Unpack" else UNKNOWN
        if last == "Literal":
            kinds = {type(a.value).__name__ for a in arguments if isinstance(a, ast.Constant)}
            return Static(kinds.pop()) if len(kinds) == 1 else STATIC
        if base.startswith("jaxtyping."):
            return self._jaxtyping(last, arguments)
        if base in _SEQUENCES:
            kind = _SEQUENCES[base]
            if kind == "tuple" and not (
                len(arguments) == 2 and isinstance(arguments[1], ast.Constant) and arguments[1].value is ...
            ):
                return Container("tuple", tuple(self.read(a) for a in arguments))
            return Container(kind, of=self.read(arguments[0]))
        if base in _MAPPINGS:
            return Container("dict", of=self.read(arguments[-1]))
        if base in ("builtins.type", "typing.Type"):
            return STATIC
        return self._plain(node.value) if not last.startswith("Callable") else UNKNOWN

    def _jaxtyping(self, kind: str, arguments: list[ast.expr]) -> Value:
        """`Float[Tensor, "batch dim"]`: the kind, and as many dimensions as the text names."""
        if kind not in _JAXTYPING:
            return UNKNOWN
        rank: int | None = None
        if len(arguments) > 1 and isinstance(arguments[1], ast.Constant) and isinstance(arguments[1].value, str):
            names = arguments[1].value.split()
            rank = len(names) if not any(n.startswith(("*", "...")) for n in names) else None
        return self.tensor(_JAXTYPING[kind], rank)


def record(session: ProgramView, info: ClassInfo, fields: Mapping[str, Value]) -> Record:
    """An instance of a dataclass or named tuple; the latter unpacks into its fields."""
    is_tuple = "typing.NamedTuple" in outside_bases(session, info)
    return Record(info, fields, tuple(fields.values()) if is_tuple else None)


def record_fields(
    session: ProgramView, info: ClassInfo, within: frozenset[ClassInfo] = frozenset()
) -> Mapping[Any, Value] | None:
    """The fields of a dataclass or named tuple (mostly a model's output); None for any other class."""
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
            fields[name] = annotated(
                session, cls.module, annotation, f"{cls.name}.{name}", cls.qualname, within | {info}
            )
    return fields
