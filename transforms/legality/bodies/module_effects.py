"""What calling a module does besides computing, by the code in reach: draw from torch's generators, move running
statistics, what is not known, or something that stays (attributes, buffers, what it was given).

Torch's layers are known by name. Of others the `forward` is read, and what it calls, with the arguments that are known
to be None, False or True where it is called: a branch that these do not take counts for nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Container, Value, options
from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo, ModuleInfo
from graphmend.analysis.program.entities import Instance
from graphmend.analysis.resolution.classes import mro
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.legality.bodies.changed import MAKERS
from graphmend.transforms.legality.bodies.layers import NOT_KNOWN, Does, Effect, gives_new, of_layer, together
from graphmend.transforms.legality.operations import aliases
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.rows.modules import has_hooks

_DEEPEST = 12
_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_BUILTINS = frozenset(
    "len range enumerate zip reversed isinstance min max sum abs pow round tuple list dict set float int bool str any "
    "all sorted getattr hasattr type super callable divmod slice".split()
)
#: methods that change what they are called on
_CHANGE = frozenset(
    "update append extend insert pop popitem remove clear setdefault add discard sort reverse copy_ register_buffer "
    "register_parameter add_module write put".split()
)
#: contexts that are left as they were entered
_CONTEXTS = frozenset(
    "torch.no_grad torch.enable_grad torch.autocast torch.amp.autocast torch.set_grad_enabled".split()
)
_TENSOR_METHODS = (
    known.ELEMENTWISE | known.ARITHMETIC | known.TESTS | known.REDUCTIONS | known.CASTS | known.METHODS
) | frozenset("expand split chunk to view size item tolist get items keys values copy format lower upper".split())
#: what is known of the arguments of a call, by position or name: None, False, True, or `...` where it may be anything;
#: `**` is there where further ones may be given
Arguments = Mapping[str | int, object]


def of_module(
    value: Value, tree: ast.AST | None, arguments: Arguments, depth: int = 0, *, given_new: bool = False
) -> Does:
    """What calling a module does; `tree` is the code in which its layers are made. `given_new`: nothing else has the
    tensor that it is given first, so that it may be changed in place.
    """
    if tree is None or has_hooks(tree):
        return Does(Effect.UNKNOWN, "hooks")
    return together(_of_one(one, tree, arguments, depth, given_new) for one in options(value))


def of_function(info: FunctionInfo, owner: ClassInfo | None, arguments: Arguments, depth: int = 0) -> Does:
    """What calling a function does, or a method of a class."""
    return _Body(info, owner, arguments, depth).does() if depth <= _DEEPEST else Does(Effect.UNKNOWN, info.name)


def _of_one(value: Value, tree: ast.AST, arguments: Arguments, depth: int, new: bool) -> Does:
    match value:
        case ExternalInstance(cls=cls):
            return of_layer(cls, tree, new)
        case Container(kind="modules", items=tuple() as items):
            handed = [new, *map(gives_new, items)]  # each is given what the one in front of it gives
            return together(_of_one(one, tree, {}, depth, n) for one, n in zip(items, handed, strict=False))
        case Container(kind="modules", of=Value() as of):
            return _of_one(of, tree, {}, depth, False)
        case Instance(info=info):
            return _of_class(info, arguments, depth)
    return NOT_KNOWN


def _of_class(info: ClassInfo, arguments: Arguments, depth: int) -> Does:
    classes = mro(info)
    method = next((cls.methods["forward"] for cls in classes if "forward" in cls.methods), None)
    if method is None:
        return Does(Effect.UNKNOWN, f"`{info.name}`")
    calls = (Does(Effect.UNKNOWN, f"`{cls.name}.__call__`") for cls in classes if "__call__" in cls.methods)
    return together([of_function(method, info, arguments, depth), *calls])


class _Body:
    """The code of one function, called with what is known of its arguments."""

    def __init__(self, info: FunctionInfo, owner: ClassInfo | None, arguments: Arguments, depth: int) -> None:
        self._info, self._owner, self._depth = info, owner, depth
        self._module: ModuleInfo = info.module
        names = [p.arg for p in info.parameters]
        self._me = names[0] if owner is not None and names else None
        self._known: dict[str, object] = {}
        """Names that stand for None, False or True."""
        for position, name in enumerate(names[1:] if owner is not None else names):
            default = info.defaults.get(name)
            otherwise = ... if _MORE in arguments else _constant(default)
            given = arguments.get(position, arguments.get(name, otherwise))
            if given is not ...:
                self._known[name] = given
        self._given = {*names}
        """Names that stand for what the function was given, which its caller may see change."""
        self._made: set[str] = set()
        """Names of tensors and numbers that were computed here, which nothing else has."""
        self._held: set[str] = set()
        """Names of containers that were made here."""
        self._modules: dict[str, Value] = {}
        """Names that loops over submodules bind."""
        self._found: list[Does] = []

    def does(self) -> Does:
        node = self._info.node
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        if not isinstance(node, ast.Lambda) and any(self._is_unknown_decorator(d) for d in node.decorator_list):
            self._add(Effect.UNKNOWN, node.decorator_list[0])
        self._visit(body)
        return together(self._found)

    def _is_unknown_decorator(self, node: ast.expr) -> bool:
        name = self._module.qualified(node.func if isinstance(node, ast.Call) else node) or ""
        return not name.startswith("torch.") and not (isinstance(node, ast.Name) and node.id == "staticmethod")

    def _add(self, effect: Effect, node: ast.AST) -> None:
        if isinstance(node, (ast.expr, ast.stmt)):
            self._found.append(Does(effect, f"`{shortened(node)}`"))

    # -- statements

    def _visit(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            if isinstance(node, ast.stmt):
                self._statement(node)
            elif isinstance(node, ast.expr):
                self._expression(node)
            elif node is not None:
                self._visit(ast.iter_child_nodes(node))

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.If(test=test, body=body, orelse=orelse):
                decided = self._decided(test)
                self._visit([test] if decided is None else [])
                self._visit([*(body if decided is not False else ()), *(orelse if decided is not True else ())])
            case ast.Assign(targets=targets, value=value):
                self._expression(value)
                for target in targets:
                    self._bind(target, value)
            case ast.AnnAssign(target=target, value=value):
                self._visit([value])
                if value is not None:
                    self._bind(target, value)
            case ast.AugAssign(target=target, value=value):
                self._expression(value)
                self._augment(target, statement)
            case ast.For(target=target, iter=each, body=body, orelse=orelse):
                self._expression(each)
                self._loop(target, each)
                self._visit([*body, *orelse])
            case ast.With(items=items, body=body):
                for item in items:
                    self._entered(item.context_expr)
                self._visit(body)
            case ast.Global() | ast.Nonlocal() | ast.Delete():
                self._add(Effect.STAYS, statement)
            case ast.Import() | ast.ImportFrom():
                self._add(Effect.UNKNOWN, statement)
            case ast.FunctionDef() | ast.ClassDef() | ast.AsyncFunctionDef():
                self._visit(statement.body)
            case _:
                self._visit(ast.iter_child_nodes(statement))

    def _entered(self, context: ast.expr) -> None:
        if not isinstance(context, ast.Call) or self._module.qualified(context.func) not in _CONTEXTS:
            self._expression(context)
            self._add(Effect.UNKNOWN, context)

    def _loop(self, target: ast.expr, each: ast.expr) -> None:
        match target, each:
            case ast.Tuple(elts=[_, inner]), ast.Call(func=ast.Name(id="enumerate"), args=[of, *_]):
                self._loop(inner, of)
                return
            case ast.Name(id=name), _ if (value := self._attribute(each)) is not None:
                self._modules[name] = value
        self._bind(target, None)

    def _bind(self, target: ast.expr, value: ast.expr | None) -> None:
        match target:
            case ast.Name(id=name):
                alias = isinstance(value, (ast.Name, ast.Attribute, ast.Subscript))
                (self._given.add if alias else self._given.discard)(name)
                (self._made.add if value is not None and self._is_new(value) else self._made.discard)(name)
                (self._held.add if isinstance(value, _DISPLAYS) else self._held.discard)(name)
                self._known.pop(name, None)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                for one in targets:
                    self._bind(one, None)
            case ast.Starred(value=one):
                self._bind(one, None)
            case ast.Subscript(value=ast.Name(id=name), slice=index) if name in self._made or name in self._held:
                self._expression(index)
            case _:
                self._add(Effect.STAYS, target)

    def _augment(self, target: ast.expr, statement: ast.stmt) -> None:
        root = target.value if isinstance(target, ast.Subscript) else target
        if not isinstance(root, ast.Name) or (root.id in self._given and root.id not in self._made):
            self._add(Effect.STAYS, statement)
        elif root.id not in self._made:
            self._add(Effect.UNKNOWN, statement)

    def _is_new(self, value: ast.expr) -> bool:
        """Does an expression give a tensor or a number that nothing else has?"""
        match value:
            case ast.BinOp() | ast.Compare():
                return True
            case ast.Name(id=name):
                return name in self._made
            case ast.Call(func=ast.Attribute(attr=attr) as function):
                if self._me is not None and _root(function) == self._me:
                    called = self._attribute(function)
                    return called is not None and all(map(gives_new, options(called)))
                return (attr in aliases.NEW or attr in MAKERS) and not any(k.arg == "inplace" for k in value.keywords)
        return False

    # -- expressions

    def _expression(self, node: ast.expr) -> None:
        match node:
            case ast.IfExp(test=test, body=body, orelse=orelse):
                decided = self._decided(test)
                self._visit([test] if decided is None else [])
                self._visit([*([body] if decided is not False else ()), *([orelse] if decided is not True else ())])
                return
            case ast.Await() | ast.Yield() | ast.YieldFrom():
                self._add(Effect.STAYS, node)
            case ast.NamedExpr(target=target, value=value):
                self._bind(target, value)
            case ast.Call():
                self._called(node)
        self._visit(ast.iter_child_nodes(node))

    def _called(self, node: ast.Call) -> None:
        match node.func:
            case ast.Attribute(value=ast.Name(id=me), attr=attr) if me == self._me:
                return self._of_self(node, attr)
            case ast.Name(id=name) if name in self._modules:
                return self._module_called(self._modules[name], node)
            case ast.Subscript() if (held := self._attribute(node.func)) is not None:
                return self._module_called(held, node)
            case ast.Name(id=name) if name in self._module.functions and name not in self._given | self._made:
                return self._function(self._module.functions[name], None, node)
        of = _root(node.func)
        local = of in self._given or of in self._made
        path = self._module.qualified(node.func) if of is not None and not local else None
        if isinstance(node.func, ast.Name) and path in (None, node.func.id, f"builtins.{node.func.id}"):
            compute = node.func.id in _BUILTINS and node.func.id not in self._module.globals
            return None if compute else self._add(Effect.UNKNOWN, node)
        folder, _, last = (path or "").rpartition(".")
        if folder in known.FUNCTIONAL or (isinstance(node.func, ast.Attribute) and folder.partition(".")[0] != "torch"):
            last = last or (node.func.attr if isinstance(node.func, ast.Attribute) else "")
            return self._operation(node, folder, last)
        if not path or not path.startswith("math."):
            self._add(Effect.UNKNOWN, node)
        return None

    def _operation(self, node: ast.Call, folder: str, last: str) -> None:
        """A function of torch, or a method of a value."""
        of_torch = folder in known.FUNCTIONAL
        keywords = {k.arg: k.value for k in node.keywords}
        in_place = (last.endswith("_") and not last.endswith("__")) or "out" in keywords
        asked = keywords.get("inplace")
        in_place |= asked is not None and not (isinstance(asked, ast.Constant) and asked.value is False)
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        changed = node.args[0] if of_torch and node.args else owner
        if in_place and "out" not in keywords and changed is not None and self._is_new(changed):
            return
        if not of_torch and last in _CHANGE and isinstance(owner, ast.Name) and owner.id in self._held:
            return
        if (
            in_place
            or (not of_torch and last in _CHANGE)
            or (of_torch and (last in known.EFFECTFUL or keywords.keys() & {"max_norm", "generator"}))
        ):
            self._add(Effect.STAYS, node)
        elif last in known.RANDOM:
            self._add(Effect.DRAWS if of_torch else Effect.UNKNOWN, node)
        elif not of_torch and last not in _TENSOR_METHODS:
            self._add(Effect.UNKNOWN, node)

    def _of_self(self, node: ast.Call, attr: str) -> None:
        assert self._owner is not None
        classes = mro(self._owner)
        if (method := next((cls.methods[attr] for cls in classes if attr in cls.methods), None)) is not None:
            return self._function(method, None if method.is_static else self._owner, node)
        value = self._attribute(node.func)
        return self._add(Effect.UNKNOWN, node) if value is None else self._module_called(value, node)

    def _module_called(self, value: Value, node: ast.Call) -> None:
        tree = self._module.source.tree
        new, arguments = bool(node.args) and self._is_new(node.args[0]), known_arguments(node, self._known)
        self._found.append(of_module(value, tree, arguments, self._depth + 1, given_new=new))

    def _function(self, info: FunctionInfo, owner: ClassInfo | None, node: ast.Call) -> None:
        self._found.append(of_function(info, owner, known_arguments(node, self._known), self._depth + 1))

    def _attribute(self, node: ast.expr) -> Value | None:
        """What `self.name` holds, a module or several."""
        match node:
            case ast.Attribute(value=ast.Name(id=me), attr=attr) if me == self._me and self._owner is not None:
                cached = (cls.attribute_cache.get(attr) for cls in mro(self._owner))
                return next((value for value in cached if value is not None), None)
            case ast.Subscript(value=value):
                return self._attribute(value)
        return None

    # -- what is known

    def _decided(self, test: ast.expr) -> bool | None:
        match test:
            case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[ast.Constant(value=None)]):
                if name in self._known and isinstance(op, (ast.Is, ast.IsNot)):
                    return (self._known[name] is None) is isinstance(op, ast.Is)
            case ast.Name(id=name) if name in self._known:
                return bool(self._known[name])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self._decided(operand)
                return None if inner is None else not inner
            case ast.BoolOp(op=op, values=values):
                found = [self._decided(v) for v in values]
                if isinstance(op, ast.And):
                    return False if False in found else (True if all(found) else None)
                return True if True in found else (False if all(f is False for f in found) else None)
        return None


_MORE = "**"


def known_arguments(node: ast.Call, names: Mapping[str, object]) -> Arguments:
    """What is known of the arguments of a call, where some names are known to stand for None, False or True."""
    found: dict[str | int, object] = {}
    places: list[tuple[str | int, ast.expr]] = [*enumerate(node.args)]
    places += [(k.arg, k.value) for k in node.keywords if k.arg is not None]
    for place, value in places:
        found[place] = names.get(value.id, ...) if isinstance(value, ast.Name) else _constant(value)
    if any(k.arg is None for k in node.keywords) or any(isinstance(a, ast.Starred) for a in node.args):
        found[_MORE] = ...
    return found


def _constant(node: ast.expr | None) -> object:
    """None, False or True, where an expression says so; `...` for anything else."""
    plain = isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, bool))
    return node.value if plain and isinstance(node, ast.Constant) else ...


def _root(node: ast.expr) -> str | None:
    """The name that a path begins with."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
