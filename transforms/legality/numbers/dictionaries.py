"""Dictionaries and attributes that hold 0-d tensors instead of Python numbers: who reads them there."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator

from graphmend.analysis.lattice.values import Container, Tensor
from graphmend.transforms.code.bindings import bindings
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.liveness import parameters
from graphmend.transforms.code.qualified_names import called, constant
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.numbers.arithmetic import NeedsPythonNumberError
from graphmend.transforms.legality.numbers.lists import Lists
from graphmend.transforms.legality.rows.counts import asks_length

_DICTIONARIES = ("builtins.dict", "collections.OrderedDict", "collections.defaultdict")


class Dictionaries(Lists):
    """Follows what is kept under a key or in an attribute, to its readers in the function. What outlives the call is
    a difference: whoever reads it later finds a tensor.
    """

    _mixed: bool
    """May what is followed be a Python number as well?"""

    def _stored_in(self, node: ast.expr, dtype: Hashable) -> None:
        """A dictionary display of which `node` is a value."""
        display = self.facts.parent(node)
        assert isinstance(display, ast.Dict)
        place = next(i for i, value in enumerate(display.values) if value is node)
        key = display.keys[place]
        match self.facts.parent(display):
            case ast.Assign(targets=[target]) | ast.AnnAssign(target=target) if key is not None:
                if isinstance(target, ast.Name):
                    self._entries(target.id, key, dtype)
                elif isinstance(target, ast.Attribute):
                    self._outlives(ast.Subscript(target, key, ast.Store()), dtype)
                else:
                    raise NeedsPythonNumberError(f"`{shortened(target)}` is to hold a Python number")
            case ast.Call(func=ast.Attribute(value=of, attr="update"), args=[one]) as call if (
                one is display and key is not None and isinstance(self.facts.parent(call), ast.Expr)
            ):
                self._entry(ast.Subscript(of, key, ast.Store()), dtype)
            case _:
                raise NeedsPythonNumberError(f"`{shortened(display)}` is to hold a Python number")

    def _of_comprehension(self, node: ast.DictComp, dtype: Hashable) -> None:
        """A dictionary of which each value is a tensor now."""
        match self.facts.parent(node):
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                self._entries(name, node.key, dtype)
            case _:
                raise NeedsPythonNumberError(f"`{shortened(node)}` is to hold a Python number")

    def _entry(self, target: ast.Subscript, dtype: Hashable) -> None:
        """`kept[key] = s`."""
        of = target.value
        value = self.facts.value(of)
        if not (isinstance(value, Container) and value.kind in ("dict", "list")):
            raise NeedsPythonNumberError(f"`{shortened(target)}` is to hold a Python number")
        if isinstance(of, ast.Name) and not self._is_outside(of.id):
            if value.kind == "list":
                self._list_name(of.id, dtype)
            else:
                self._entries(of.id, target.slice, dtype)
            return
        self._outlives(target, dtype)

    def _is_outside(self, name: str) -> bool:
        """Is a name bound to what the caller or an attribute holds as well?"""
        bound = [one.value for one in bindings(self.facts).get(name, []) if not one.part]
        given = name in parameters(self.facts.function)
        return given if not bound else not given and all(isinstance(v, ast.Attribute) for v in bound)

    def _entries(self, name: str, key: ast.expr, dtype: Hashable) -> None:
        """What becomes of a local dictionary that holds a tensor under a key now."""
        if (name, dtype) in self._lists:
            return
        self._lists.add((name, dtype))
        bound = [one.value for one in bindings(self.facts).get(name, []) if not one.part]
        if not bound or not all(isinstance(v, (ast.Dict, ast.DictComp)) or self._makes_dictionary(v) for v in bound):
            raise NeedsPythonNumberError(f"`{name}` is not known to be a dictionary of this function")
        for node in ast.walk(self.facts.function):
            if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
                raise NeedsPythonNumberError(f"`{name}` is no local name")
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                self._looked_up(node, key, dtype)

    def _makes_dictionary(self, node: ast.expr | None) -> bool:
        return node is not None and called(self.facts, node, *_DICTIONARIES) is not None

    def _looked_up(self, node: ast.Name, key: ast.expr, dtype: Hashable) -> None:
        parent = self.facts.parent(node)
        match parent:
            case ast.Subscript(slice=index, ctx=ast.Store() | ast.Del()):
                above = self.facts.parent(parent)
                if isinstance(above, ast.AugAssign) and self._may_be(index, key):
                    raise NeedsPythonNumberError(f"`{shortened(above)}` counts in a Python number")
            case ast.Subscript(slice=index, ctx=ast.Load()):
                if self._may_be(index, key) and not isinstance(self.facts.value(parent), Tensor):
                    self._follow(parent, dtype)
            case ast.Attribute(attr="update" | "keys"):
                return
            case ast.Attribute(attr="values" | "items" as attr) if isinstance(self.facts.parent(parent), ast.Call):
                self._run_through(self.facts.parent(parent), attr, dtype)
            case ast.Compare(ops=[ast.In() | ast.NotIn()]):
                return
            case ast.Call() if asks_length(self.facts, parent):
                return
            case ast.For(iter=keys) | ast.comprehension(iter=keys) if keys is node:
                return
            case _:
                raise NeedsPythonNumberError(f"`{shortened(parent or node)}` needs Python numbers")

    def _run_through(self, call: ast.AST | None, attr: str, dtype: Hashable) -> None:
        around = self.facts.parent(call) if call is not None else None
        if isinstance(around, (ast.For, ast.comprehension)):
            match attr, around.target:
                case ("items", ast.Tuple(elts=[_, ast.Name(id=name)])) | ("values", ast.Name(id=name)):
                    self._mixed = True  # the other entries
                    self._name(name, dtype)
                    return None
        if attr == "values" and isinstance(call, ast.Call) and isinstance(around, ast.Call) and call in around.args:
            return self._listed(call, dtype)
        text = shortened(call) if call is not None else attr
        raise NeedsPythonNumberError(f"`{text}` needs Python numbers")

    def _may_be(self, index: ast.expr, key: ast.expr) -> bool:
        one, other = constant(index), constant(key)
        return one is None or other is None or one == other

    def _grown(self, of: ast.Attribute, dtype: Hashable) -> None:
        """A list in an attribute, to which a tensor is appended."""
        self.differences.append(Difference("type", f"`{shortened(of)}` holds 0-d tensors instead of Python numbers"))
        for node in self._reads(of):
            if not isinstance(self.facts.parent(node), ast.Attribute):
                self._listed(node, dtype)

    def _outlives(self, target: ast.expr, dtype: Hashable) -> None:
        """A place that others read when the call is over, and the function itself."""
        self.differences.append(
            Difference("type", f"`{shortened(target)}` holds a 0-d tensor instead of a Python number")
        )
        for node in self._reads(target):
            if (ast.unparse(node), dtype) not in self._lists and not isinstance(self.facts.value(node), Tensor):
                self._lists.add((ast.unparse(node), dtype))
                self._follow(node, dtype)

    def _reads(self, target: ast.expr) -> Iterator[ast.expr]:
        """Where the function reads a place, by its text."""
        wanted = ast.unparse(target)
        for node in ast.walk(self.facts.function):
            place = isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Load)
            if place and isinstance(node, ast.expr) and ast.unparse(node) == wanted:
                yield node
