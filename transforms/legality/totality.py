"""May code raise, where it is evaluated although it was not before?

What is evaluated there all the same, unconditionally before or on both sides, has raised already: it brings nothing
new.
"""

from __future__ import annotations

import ast
from collections.abc import Container
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import UNKNOWN, Static, Tensor, may_be_none, tensor_in
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.analysis.torch_facts import load
from graphmend.transforms.code.certain import evaluated_before, place_of, raised_before
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.liveness import locals_of, parameters, reads, surely_bound, writes
from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.context import contexts, guards, observed
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.raising import python, tensors
from graphmend.transforms.legality.raising.kept_away import kept_away
from graphmend.transforms.legality.raising.python import MAY
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


def _is_lacking(facts: FunctionFacts, node: ast.Attribute) -> bool:
    """Is an attribute read that tensors do not have by themselves?"""
    of_tensor = isinstance(facts.value(node.value), Tensor)
    return of_tensor and not load(facts.torch_version).has_method(node.attr)


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
#: attributes of every tensor
_METADATA = frozenset(
    """
    shape dtype device ndim requires_grad grad data is_cuda layout itemsize nbytes is_leaf names real is_sparse
    is_quantized is_meta grad_fn
""".split()
)


#: exceptions that no operation of torch raises, nor what is derived from them
_NEVER_TORCH = frozenset(
    "AttributeError ImportError ModuleNotFoundError KeyError NameError StopIteration OSError FileNotFoundError "
    "KeyboardInterrupt SystemExit ZeroDivisionError UnicodeError".split()
)


@answers("totality")
def may_raise(
    facts: FunctionFacts, *nodes: ast.expr, protected: Container[ast.expr] = frozenset(), at: ast.stmt | None = None
) -> list[Difference]:
    """The exceptions that evaluating code for every input may bring, each with kind `exception`; none where it is
    total.

    `protected` are the operations whose operands are harmless then (see `double_where`); `at` is the statement in
    whose place the code is evaluated, by default the branch of the finding: what is evaluated there all the same may
    raise once more.
    """
    return list(dict.fromkeys(_judged(facts, *nodes, protected=protected, at=at).found))


@answers("totality")
def kept_from_raising(
    facts: FunctionFacts, *nodes: ast.expr, protected: Container[ast.expr] = frozenset(), at: ast.stmt | None = None
) -> list[str]:
    """The operations of code that would raise for values which a test is there to keep away from them, as sentences:
    the program has relied on it that they are not evaluated then.
    """
    return list(dict.fromkeys(_judged(facts, *nodes, protected=protected, at=at).kept))


def _judged(facts: FunctionFacts, *nodes: ast.expr, protected: Container[ast.expr], at: ast.stmt | None) -> _Judge:
    judge = _Judge(facts, protected, at if at is not None else place_of(facts))
    for node in nodes:
        judge.take(node)
    return judge


@answers("totality")
def uncaught(facts: FunctionFacts) -> ast.AST | None:
    """The first operation on tensors in the `try` around a statement that may raise what is caught, or seen, there now.

    TorchDynamo runs a frame that breaks inside of a `try` as plain Python. Once nothing in it breaks, the body is part
    of a graph, and what that raises, while it is traced or while it runs, passes the handlers (torch 2.8 to 2.13).
    """
    return _uncaught(facts)


@lru_cache(maxsize=2)
def _uncaught(facts: FunctionFacts) -> ast.AST | None:
    raising = (_raising(facts, guarding, _caught(guarding)) for guarding in guards(facts, facts.statement))
    return next((one for one in raising if one is not None), None)


@answers("totality")
def uncaught_around(facts: FunctionFacts) -> Difference | None:
    """The same for what may see exceptions further out: contexts of the program's own, and a `try` around a call of the
    function in sight, or of one that calls it. That frame runs as plain Python for a break in what it calls, too.
    """
    return _passing(facts)


@answers("totality")
def observed_around(facts: FunctionFacts) -> str | None:
    """The name of a function in sight that calls this one, or calls one that does, where a `try` sees exceptions."""
    seen, stack = {facts.function}, [facts]
    while stack:
        for caller in stack.pop().calls():
            if observed(caller, caller.statement):
                return caller.function.name
            if caller.function not in seen:
                seen.add(caller.function)
                stack.append(caller)
    return _caught_by_name(facts.source.tree, facts.function)


@lru_cache(maxsize=64)
def _caught_by_name(tree: ast.Module | None, function: ast.AST) -> str | None:
    """Where code of the file that nothing is known of calls a function by its name in a `try`: a script does."""
    plain = tree is not None and any(function is statement for statement in tree.body)
    name = getattr(function, "name", None)
    for node in nodes_in(tree) if tree is not None else ():
        if isinstance(node, ast.Try) and node.handlers:
            for call in (n for statement in node.body for n in nodes_in(statement) if isinstance(n, ast.Call)):
                match call.func:
                    case ast.Name(id=called) if plain and called == name:
                        return ast.unparse(call.func)
                    case ast.Attribute(value=ast.Name(id="self"), attr=called) if not plain and called == name:
                        return ast.unparse(call.func)
    return None


@lru_cache(maxsize=2)
def _passing(facts: FunctionFacts) -> Difference | None:
    for context in contexts(facts, facts.statement):
        if (raising := _raising(facts, context.block, "all")) is not None:
            return _passes(raising, ast.unparse(context.manager))
    seen = {facts.function}
    stack: list[tuple[FunctionFacts, tuple[_Part, ...]]] = [(facts, (_Part(facts, facts.function),))]
    while stack:
        called, inside = stack.pop()
        for caller in called.calls():
            further = (context.block for context in contexts(caller, caller.statement))
            for around in (*guards(caller, caller.statement), *further):
                for part in (_Part(caller, around, caller.node), *inside):
                    if (raising := _raising(part.facts, part.block, _caught(around), part.call)) is not None:
                        return _passes(raising, caller.function.name)
            if caller.function not in seen:
                seen.add(caller.function)
                stack.append((caller, (_Part(caller, caller.function, caller.node), *inside)))
    return None


def _passes(raising: ast.AST, by: str) -> Difference:
    return Difference("exception", f"what `{shortened(raising)}` raises in a graph, `{by}` does not see")


_Block = ast.Try | ast.With | ast.FunctionDef | ast.AsyncFunctionDef


class _Part(NamedTuple):
    """Code that runs where something sees its exceptions, but for a call in it that is another part."""

    facts: FunctionFacts
    block: _Block
    call: ast.AST | None = None


def _raising(facts: FunctionFacts, block: _Block, caught: str, call: ast.AST | None = None) -> ast.AST | None:
    """The first operation on tensors in a block, but for a call that is looked into, that may raise what is caught."""
    for node in (n for statement in block.body for n in nodes_in(statement) if caught and n is not call):
        if isinstance(node, ast.Attribute) and _is_lacking(facts, node):
            return node
        if caught == "AttributeError":
            continue
        if isinstance(node, ast.AugAssign) and isinstance(facts.value(node.target), Tensor):
            return node
        if not isinstance(node, (ast.Call, ast.BinOp, ast.Subscript, ast.Compare, ast.UnaryOp)):
            continue
        if not isinstance(facts.value(node), Static) and may_raise(facts, node, at=block):
            return node
    return None


def _caught(guard: ast.Try | ast.With) -> str:
    """What of a tensor's exceptions is caught: "all", "AttributeError" alone, or "" for nothing."""
    if isinstance(guard, ast.With) or guard.finalbody:
        return "all"
    handled = [t for h in guard.handlers for t in (h.type.elts if isinstance(h.type, ast.Tuple) else [h.type])]
    names = {of.id if isinstance(of, ast.Name) else "" for of in handled}
    return "all" if names - _NEVER_TORCH else "AttributeError" if "AttributeError" in names else ""


class _Judge:
    def __init__(self, facts: FunctionFacts, protected: Container[ast.expr], at: ast.stmt) -> None:
        self.facts, self.protected, self.at = facts, protected, at
        self.found: list[Difference] = []
        self.kept: list[str] = []
        """What a test keeps from raising."""
        self._inner: set[str] = set()
        """Names that a comprehension around binds."""

    def take(self, node: ast.AST) -> None:
        """Judges a node and everything that its evaluation evaluates."""
        if isinstance(node, ast.Lambda):
            return
        if isinstance(node, ast.expr):
            if not reads(node) & self._inner and raised_before(self.facts, self.at, node):
                return
            if (why := self._why(node)) is not None:
                self.found.append(Difference("exception", f"`{shortened(node)}` is evaluated on both sides and {why}"))
                if node not in self.protected and kept_away(self.facts, node, self.at):
                    self.kept.append(f"`{shortened(node)}` raises for values that a test keeps away from it")
        if isinstance(node, _COMPREHENSIONS):
            self._inner |= {n for g in node.generators for n in writes(g.target)}
        children = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name)):
            # a callee by name is there; what it is an attribute of is evaluated
            children.remove(node.func)
            children += [node.func.value] if isinstance(node.func, ast.Attribute) else []
            if isinstance(node.func, ast.Name):
                children.append(node.func)
        for child in children:
            self.take(child)

    def _why(self, node: ast.expr) -> str | None:
        facts = self.facts
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                return self._bound(name, node)
            case ast.Attribute(ctx=ast.Load()):
                return self._attribute(node)
            case ast.Subscript(value=base):  # also of a place that is stored to
                found = tensor_in(facts.value(base))
                return python.place(facts, node) if found is None else tensors.indexed(facts, node)
            case ast.BinOp(left=left, right=right):
                if any(tensor_in(facts.value(o)) is not None for o in (left, right)):
                    return tensors.operator(facts, node, self.protected)
                return python.arithmetic(facts, node)
            case ast.UnaryOp(op=op, operand=operand):
                if tensor_in(facts.value(operand)) is not None:
                    return tensors.unary(facts, node)
                if isinstance(op, ast.Not):
                    return None
                kind = python.number(facts, operand)
                return None if kind and not (isinstance(op, ast.Invert) and kind == "float") else MAY
            case ast.Compare():
                return self._compare(node)
            case ast.BoolOp(values=values):
                return next((w for v in values[:-1] if (w := tensors.truth(facts, v)) is not None), None)
            case ast.IfExp(test=test):
                return tensors.truth(facts, test)
            case ast.FormattedValue(value=value, format_spec=spec):
                return MAY if spec is not None and not self._formats(value) else None
            case ast.Call():
                return self._call(node)
            case ast.Starred() | ast.Await() | ast.Yield() | ast.YieldFrom():
                return MAY
        return None

    def _bound(self, name: str, node: ast.Name) -> str | None:
        facts = self.facts
        if name in self._inner or name in parameters(facts.function) or name not in locals_of(facts.function):
            return None
        if facts.parent(node) is None:
            return None  # made by a rewrite, which knows
        statement = next((a for a in facts.ancestors(node) if isinstance(a, ast.stmt)), self.at)
        if name in surely_bound(facts, statement):
            return None
        if any(isinstance(e, ast.Name) and e.id == name for e in evaluated_before(facts, self.at)):
            return None
        inner = (ast.Lambda, *_COMPREHENSIONS)
        if any(isinstance(a, inner) and name in _binds(a) for a in facts.ancestors(node)):
            return None
        return "may not be bound"

    def _attribute(self, node: ast.Attribute) -> str | None:
        facts = self.facts
        base = facts.value(node.value)
        if may_be_none(base):
            return "raises for None"
        if isinstance(base, Tensor):
            return (
                None if node.attr in _METADATA or not facts.value(node) is not UNKNOWN else self._of_tensor(base, node)
            )
        if facts.value(node) is not UNKNOWN or qualified(facts, node) is not None:
            return None
        return "raises where there is no such attribute"

    def _of_tensor(self, base: Tensor, node: ast.Attribute) -> str | None:
        if node.attr in ("mT", "mH"):
            return None if (base.rank or 0) >= 2 else "raises for fewer dimensions than two"
        if node.attr in ("T", "H"):
            return None if base.rank == 2 else "may raise or warn for other than two dimensions"
        if node.attr == "imag":
            return "raises for what is not complex"
        return None if self.facts.value(node) is not UNKNOWN else MAY

    def _compare(self, node: ast.Compare) -> str | None:
        sides = [node.left, *node.comparators]
        if any(tensor_in(self.facts.value(s)) is not None for s in sides):
            return tensors.compared(self.facts, node)
        pairs = zip(node.ops, sides, sides[1:], strict=False)
        return next((w for op, a, b in pairs if (w := python.comparison(self.facts, op, a, b)) is not None), None)

    def _formats(self, value: ast.expr) -> bool:
        """Does a number take every format that is written for numbers?"""
        return python.number(self.facts, value) == "float"

    def _call(self, node: ast.Call) -> str | None:
        facts = self.facts
        name = qualified(facts, node.func)
        if name is None:
            return MAY
        folder, _, last = name.rpartition(".")
        if folder == "builtins":
            return python.builtin(facts, node, last)
        if folder == "math":
            return python.mathematical(facts, node, last)
        if folder in known.FUNCTIONAL:
            return tensors.call(facts, node, folder, last)
        if folder.startswith("torch.nn.") and last in known.HOLDS:
            return None
        return None if isinstance(facts.value(node), Static) and constant(node) is not None else MAY


def _binds(node: ast.AST) -> set[str]:
    """The names that a lambda or a comprehension binds itself."""
    if isinstance(node, ast.Lambda):
        return {a.arg for a in nodes_in(node.args) if isinstance(a, ast.arg)}
    return {n for g in getattr(node, "generators", ()) for n in writes(g.target)}
