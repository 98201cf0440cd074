"""Reads a function's source and fills in `Use`s: one pass in the order of the text, through the modules and methods
that get a parameter.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import types
from collections.abc import Iterator
from typing import Any

import torch

from . import definitions, indexing, layers, moves, operations, usage
from .definitions import definition_of, globals_of, parameters_of
from .usage import Known, Reading, Ref, ShapeOf, SizeOf, Unbound, Use, Value

DEEPEST = 8
MOST_STEPS = 20_000


def uses(function: Any, instance: Any, sides: tuple[int, ...], *, of_tensors: bool = True) -> dict[str, Use]:
    """The uses of a function's parameters. `instance` is what the first one is, where the function is a method.

    In a constructor nothing is a tensor: `args.dim` is a setting there, and a method of tensors in a `forward`.
    """
    found: dict[str, Use] = {}
    definition = definition_of(function)
    if definition is None:
        return found
    names: dict[str, Value] = {}
    for position, argument in enumerate(parameters_of(definition)):
        if position == 0 and instance is not None:
            names[argument] = Known(instance)
        else:
            found[argument] = Use()
            names[argument] = Ref(found[argument])
    _Reader(Reading(sides, MOST_STEPS, of_tensors=of_tensors), names, globals_of(function), 0).block(definition.body)
    return found


class _Reader:
    """Follows values through one function's body."""

    def __init__(self, budget: Reading, names: dict[str, Value], around: dict[str, Any], depth: int) -> None:
        self.budget = budget
        self.names = names
        self.around = around
        self.depth = depth
        self.returned: Value = None
        self.side_by_side: dict[str, int] = {}
        """By name of an index of layers in a loop, how many there are."""
        self.demanded: type[ast.cmpop] | None = None
        """The comparison that has to hold for a size, in the test of an assertion or in front of a `raise`."""
        self.counted: set[str] = set()
        """Names that loops bind."""
        self.asked: set[str] = set()
        """Names that a test asks whether they can be called: to be called there is no demand."""

    # statements

    def block(self, body: list[Any]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, node: Any) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return
        if isinstance(node, ast.Assign):
            name = definitions.name_of_another_form(node, self.around)
            if name is not None and isinstance(self.names.get(name), Ref):
                return
            value = self.value(node.value)
            for target in node.targets:
                self._bind(target, value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._bind(node.target, self.value(node.value))
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            self.counted |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
            self.side_by_side.update(indexing.of_layers(node, self.value))
            for _ in self._rounds(node.target, node.iter, node.body):
                self.block(node.body)
        elif isinstance(node, ast.Assert):
            self._demanding(node.test, ast.Eq)
        elif isinstance(node, ast.If) and any(isinstance(s, ast.Raise) for s in node.body):
            self._demanding(node.test, ast.NotEq)
            self.block([*node.body, *node.orelse])
        elif isinstance(node, ast.Return):
            self.returned = self.value(node.value) if node.value is not None else None
        else:
            self.asked |= operations.asked(node.test) if isinstance(node, ast.If) else set()
            for _, field in ast.iter_fields(node):
                for child in field if isinstance(field, list) else [field]:
                    if isinstance(child, ast.expr):
                        self.value(child)
                    elif isinstance(child, (ast.stmt, ast.withitem, ast.ExceptHandler)):
                        self._statement(child)

    def _demanding(self, test: Any, operator: type[ast.cmpop]) -> None:
        self.demanded = operator
        self.value(test)
        self.demanded = None

    def _bind(self, target: Any, value: Value) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            for item, part in zip(target.elts, self._parts(value, target.elts)):  # noqa: B905
                self._bind(item, part)
        elif isinstance(target, ast.Attribute) and isinstance(owner := self.value(target.value), Known):
            self.budget.keep(owner.value, target.attr, value)
        elif isinstance(target, ast.Subscript):
            self.value(target.slice)

    def _parts(self, value: Value, targets: list[Any]) -> list[Value]:
        nothing: list[Value] = [None] * len(targets)
        starred = any(isinstance(target, ast.Starred) for target in targets)
        if isinstance(value, tuple):
            return list(value) if len(value) == len(targets) and not starred else nothing
        if isinstance(value, ShapeOf):
            (value.ref.has_least if starred else value.ref.has_rank)(len(targets) - starred)
            return nothing if starred else [SizeOf(value.ref, axis) for axis in range(len(targets))]
        if isinstance(value, Unbound) and not starred:
            SizeOf(value.ref, value.axis).must_be(len(targets))
        if isinstance(value, Ref) and not value.back:
            value.use.items = max(value.use.items, len(targets) - starred)
            return usage.unpacked(value.use, targets) if not starred else [Ref(value.use.of_item()) for _ in targets]
        return nothing

    def _item(self, value: Value) -> Value:
        """What a loop over a value binds first."""
        if isinstance(value, tuple):
            return value[0] if value else None
        if isinstance(value, Known):
            return indexing.first_layer(value.value)
        if isinstance(value, Ref):
            value.use.iterated = True
            return Ref(value.use.of_item())
        return None

    # expressions

    def value(self, node: Any) -> Value:
        self.budget.steps -= 1
        if self.budget.steps < 0:
            return None
        read = getattr(self, "_" + type(node).__name__.lower(), None)
        return read(node) if read is not None else self._others(node)

    def _others(self, node: Any) -> Value:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.expr, ast.keyword)):
                self.value(child)
        return None

    def _listcomp(self, node: Any) -> Value:
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        for generator in node.generators:
            for _ in self._rounds(generator.target, generator.iter, parts):
                for part in parts if generator is node.generators[-1] else ():
                    self.value(part)
        return None

    _generatorexp = _setcomp = _dictcomp = _listcomp

    def _rounds(self, target: Any, over: Any, parts: list[Any]) -> Iterator[None]:
        """Each round of a loop that binds other names than the last one: of a table with known names, or one."""
        for each in indexing.keys_of(target, over, parts, self.value) or [self._item(self.value(over))]:
            self._bind(target, each)
            yield

    def _name(self, node: Any) -> Value:
        if node.id in self.names:
            return self.names[node.id]
        found = self.around.get(node.id, getattr(builtins, node.id, None))
        return None if found is None else Known(found)

    def _tuple(self, node: Any) -> Value:
        return tuple(self.value(item) for item in node.elts)

    _list = _tuple

    def _constant(self, node: Any) -> Value:
        return Known(node.value)

    def _unaryop(self, node: Any) -> Value:
        return self.value(node.operand)

    def _ifexp(self, node: Any) -> Value:
        self.value(node.test)
        self.asked |= operations.asked(node.test)
        body, other = self.value(node.body), self.value(node.orelse)
        return body if isinstance(body, Ref) else other if isinstance(other, Ref) else body

    def _binop(self, node: Any) -> Value:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(node.op, ast.MatMult):
            operations.multiplied(left, right)
            return None
        if isinstance(node.op, ast.Mult) and (isinstance(left, tuple) or isinstance(right, tuple)):  # `[dim] * depth`
            return left if isinstance(left, tuple) else right
        return left if isinstance(left, Ref) else right if isinstance(right, Ref) else None

    def _compare(self, node: Any) -> Value:
        """`"mask" in batch` makes a key optional; `mode == "sum"` and `mode in ("sum", "mean")` tell what it may be."""
        asked = node.left.value if isinstance(node.left, ast.Constant) else None
        compared = self.value(node.left)
        if isinstance(compared, Ref) and not compared.back:
            several = (n.elts if isinstance(n, (ast.Tuple, ast.List, ast.Set)) else [n] for n in node.comparators)
            texts = (n.value for each in several for n in each if isinstance(n, ast.Constant))
            compared.use.choices += [text for text in texts if isinstance(text, str)]
        for operator, other in zip(node.ops, node.comparators):  # noqa: B905
            value = self.value(other)
            if isinstance(value, Ref) and isinstance(operator, (ast.In, ast.NotIn)) and isinstance(asked, str):
                value.use.optional.add(asked)
            for size, number in ((compared, value), (value, compared)):
                whole = isinstance(number, Known) and isinstance(number.value, int)
                if isinstance(size, SizeOf) and whole and isinstance(operator, self.demanded or ()):
                    size.must_be(number.value)
        return None

    def _attribute(self, node: Any) -> Value:
        base = self.value(node.value)
        if isinstance(base, Known):
            if (kept := self.budget.kept.get((id(base.value), node.attr))) is not None:
                return kept
            try:
                found = getattr(base.value, node.attr)
            except Exception:
                return None
            of_class = isinstance(base.value, type) and isinstance(found, types.FunctionType)
            if of_class and isinstance(inspect.getattr_static(base.value, node.attr), types.FunctionType):
                found = types.MethodType(found, base.value)  # in a constructor `self` stands for its class
            return Known(found)
        if not isinstance(base, Ref):
            return None
        if hasattr(self.budget.tensor, node.attr):
            base.use.methods.add(node.attr)
        if node.attr == "shape":
            if self.budget.tensor is object and not base.back:  # of a space, which is no tensor
                base.use.attributes.setdefault("shape", Use()).iterated = True
            return ShapeOf(base)
        if node.attr == "ndim":
            return SizeOf(base, None)
        if node.attr in ("T", "mT"):
            return base.by(usage.transposed(-2, -1))
        if hasattr(self.budget.tensor, node.attr) or base.back:
            return None
        return Ref(base.use.attributes.setdefault(node.attr, Use()))

    def _subscript(self, node: Any) -> Value:
        base, index = self.value(node.value), node.slice
        self._bounds(index)
        known = self._name(index) if isinstance(index, ast.Name) else index
        if isinstance(known, (ast.Constant, Known)) and isinstance(known.value, str):
            if isinstance(base, Ref):
                return Ref(base.use.keys.setdefault(known.value, Use()))
            table = isinstance(base, Known) and isinstance(base.value, indexing.TABLES) and known.value in base.value
            return Known(base.value[known.value]) if table else None
        number = indexing.integer(index)
        if isinstance(base, ShapeOf):
            return indexing.of_shape(base.ref, index)
        several = self.side_by_side.get(index.id) if isinstance(index, ast.Name) else None
        if isinstance(base, Known):
            return indexing.first_layer(base.value) if number is not None or several is not None else None
        if isinstance(base, tuple) and number is not None:
            return base[number] if -len(base) <= number < len(base) else None
        if not isinstance(base, Ref):
            return None
        if several is not None and not base.back:
            base.use.items = max(base.use.items, several)
            return Ref(base.use.of_item())
        if isinstance(index, ast.Tuple):
            return indexing.indexed(base, index.elts, self.side_by_side)
        if isinstance(index, ast.Slice):
            return base
        return indexing.picked(base, index, self.value(index), self.counted)

    def _bounds(self, index: Any) -> None:
        """The numbers between which slices lie."""
        for part in index.elts if isinstance(index, ast.Tuple) else [index]:
            for bound in (part.lower, part.upper) if isinstance(part, ast.Slice) else ():
                value = self.value(bound) if bound is not None else None
                if isinstance(value, Ref) and not value.back:
                    value.use.bounds = True

    def _call(self, node: Any) -> Value:
        arguments = [self.value(a.value if isinstance(a, ast.Starred) else a) for a in node.args]
        keywords = {k.arg: self.value(k.value) for k in node.keywords}
        if isinstance(node.func, ast.Attribute):
            base = self.value(node.func.value)
            if isinstance(base, Ref):
                return self._method(base, node, arguments)
            if base is None:
                operations.wanted_by(node.func.attr, [None, *arguments])
        callee = self.value(node.func)
        if isinstance(callee, Ref):
            if not (isinstance(node.func, ast.Name) and node.func.id in self.asked):
                callee.use.calls = len(arguments)
            return None
        if isinstance(callee, Known):
            return self._enter(callee.value, arguments, keywords, node)
        return None

    def _method(self, base: Ref, node: Any, arguments: list[Value]) -> Value:
        name = node.func.attr
        if hasattr(self.budget.tensor, name):
            base.use.methods.add(name)
        operations.wanted_by(name, [base, *arguments])
        if name in operations.OF_ONE_AXIS:
            moves.named_axes([base], [*node.keywords, *moves.axes(node.args)])
        if name in operations.SAME_SHAPE_METHODS:
            return base
        if name == "get" and node.args and isinstance(node.args[0], ast.Constant):
            key = node.args[0].value
            if not isinstance(key, str):
                return None
            base.use.optional.add(key)
            return Ref(base.use.keys.setdefault(key, Use()))
        known, found = moves.moved(base, node, arguments)
        if known:
            return found
        if not hasattr(self.budget.tensor, name) and not base.back:
            base.use.attributes.setdefault(name, Use()).calls = len(arguments)
        return None

    def _enter(self, callee: Any, arguments: list[Value], keywords: dict[Any, Value], node: Any) -> Value:
        first = arguments[0] if arguments else None
        if isinstance(callee, torch.nn.Sequential) and type(callee).forward is torch.nn.Sequential.forward:
            for layer in callee:
                first = self._enter(layer, [first], {}, node)
            return first
        if isinstance(callee, torch.nn.Module):
            for position, value in (*enumerate(arguments), *keywords.items()):
                for item in value if isinstance(value, tuple) else (value,):
                    if isinstance(item, Ref):
                        for tensor in layers.demands(callee, position, self.budget.sides):
                            item.wants(tensor)
            if type(callee).__module__.startswith("torch."):
                if isinstance(first, Ref) and isinstance(callee, torch.nn.Linear):
                    return first.by(usage.features(callee.in_features))
                if isinstance(first, Ref) and isinstance(callee, torch.nn.Embedding):
                    return first.by(usage.embedded())
                return first if isinstance(callee, layers.SAME_SHAPE) else None
            return self._follow(callee.forward, arguments, keywords)
        name = getattr(callee, "__name__", "")
        if str(getattr(callee, "__module__", "")).startswith("torch") or name in dir(torch):
            operations.wanted_by(name, arguments)
            moves.named_axes(arguments if name in operations.OF_ONE_AXIS else [], node.keywords)
        if name in ("dict", "copy", "deepcopy") and isinstance(first, Ref) and len(arguments) == 1:
            return first
        if name in operations.OF_ARRAYS and isinstance(first, Ref):
            first.use.array = True
            return first
        if name in ("rearrange", "reduce", "repeat") and isinstance(first, Ref):
            return operations.rearranged(name, first, node, self.value)
        if name in ("enumerate", "list", "tuple", "reversed", "iter", "zip"):
            return self._loop(name, arguments)
        if name in operations.SAME_SHAPE_FUNCTIONS:
            return first
        if name in ("cat", "concat", "concatenate") and isinstance(first, tuple):
            return next((part for part in first if isinstance(part, Ref)), None)
        if name == "flatten":
            return first.by(usage.last_of_two) if isinstance(first, Ref) else None
        if name == "len" and isinstance(first, Ref) and not first.back:
            first.use.counted = True
        if name in operations.OF_SEVERAL and self.budget.tensor is object:
            self._loop(name, arguments)
            return None
        own = not str(getattr(callee, "__module__", "")).startswith(("torch", "builtins"))
        if own and isinstance(callee, type) and self.budget.tensor is object:
            return self._follow(vars(callee).get("__init__"), [Known(None), *arguments], keywords)
        return self._follow(callee, arguments, keywords) if own and inspect.isroutine(callee) else None

    def _loop(self, name: str, arguments: list[Value]) -> Value:
        items = tuple(self._item(value) for value in arguments)
        if name == "enumerate":
            return ((None, *items[:1]),)
        return (items,) if name == "zip" else items[:1]

    def _follow(self, function: Any, arguments: list[Value], keywords: dict[Any, Value]) -> Value:
        """Reads a function of the user's that gets any of the values."""
        concerned = any(isinstance(v, Ref) for v in (*arguments, *keywords.values()))
        definition = definition_of(function) if concerned and self.depth < DEEPEST else None
        if definition is None:
            return None
        names = parameters_of(definition)
        bound: dict[str, Value] = {}
        owner = getattr(function, "__self__", None)
        given = ([Known(owner)] if owner is not None else []) + arguments
        bound.update(zip(names, given))  # noqa: B905
        bound.update({name: value for name, value in keywords.items() if name in names})
        reader = _Reader(self.budget, bound, globals_of(function), self.depth + 1)
        reader.block(definition.body)
        return reader.returned
