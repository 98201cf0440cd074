"""Named tuples and data classes that hold 0-d tensors instead of Python numbers: who reads their fields."""

from __future__ import annotations

import ast

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.liveness import locals_of
from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.legality.names.replaced import is_lasting
from graphmend.transforms.legality.numbers.containers.dictionaries import Dictionaries

_NAMED_TUPLES = ("collections.namedtuple", "typing.NamedTuple", "dataclasses.dataclass")


class Records(Dictionaries):
    """Knows the records of the file by their calls."""

    def _place_in_record(self, call: ast.Call, node: ast.expr) -> tuple[str, tuple[str, ...]] | None:
        """The field for which a call gives a value, and all fields, where it makes a record; None otherwise."""
        fields = self._fields(call.func)
        if fields is None or any(isinstance(a, ast.Starred) for a in call.args) or len(call.args) > len(fields):
            return None
        given = dict(zip(map(id, call.args), fields, strict=False)) | {id(k.value): k.arg for k in call.keywords}
        field = given.get(id(node))
        return (field, fields) if field in fields and field is not None else None

    def _fields(self, cls: ast.expr) -> tuple[str, ...] | None:
        """The fields of a record class of the file that has nothing else."""
        tree = self.facts.source.tree
        if not (isinstance(cls, ast.Name) and isinstance(tree, ast.Module) and is_lasting(cls.id, tree)):
            return None
        if cls.id in locals_of(self.facts.function):
            return None
        if any(_is_changed(n, cls.id) for n in nodes_in(tree)):
            return None
        for statement in tree.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=cls.id)], value=ast.Call(func=made, args=[_, names], keywords=[])):
                    if qualified(self.facts, made) != "collections.namedtuple":
                        return None
                    if isinstance(names, (ast.List, ast.Tuple)):
                        return tuple(str(constant(name)) for name in names.elts)
                    return tuple(str(constant(names)).replace(",", " ").split())
                case ast.ClassDef(name=cls.id, keywords=[]):
                    kinds = [*statement.bases, *statement.decorator_list]
                    plain = [k.func if isinstance(k, ast.Call) else k for k in kinds]
                    if len(kinds) != 1 or qualified(self.facts, plain[0]) not in _NAMED_TUPLES:
                        return None
                    body = [s for s in statement.body if not _is_docstring(s)]
                    options = {o.arg for k in kinds if isinstance(k, ast.Call) for o in k.keywords}
                    fields = [s.target for s in body if isinstance(s, ast.AnnAssign) and _is_plain(s)]
                    whole = options <= {"frozen", "slots", "eq", "repr"} and len(fields) == len(body)
                    return tuple(map(ast.unparse, fields)) if whole else None
                case _:
                    pass
        return None


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_plain(field: ast.AnnAssign) -> bool:
    """Is a field a parameter by its place?"""
    known = not any(word in ast.unparse(field.annotation) for word in ("ClassVar", "InitVar", "KW_ONLY"))
    return known and (field.value is None or isinstance(field.value, ast.Constant))


def _is_changed(node: ast.AST, cls: str) -> bool:
    """Does code change a class behind its definition?"""
    match node:
        case ast.Attribute(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
            return name == cls
        case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[ast.Name(id=name), *_]):
            return name == cls
    return False
