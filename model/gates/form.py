"""Form and names of a replacement: an allow-list over its syntax tree.

A replacement may do with tensors, numbers and containers what it likes. Whatever else it names, calls or stores to, the
original names, calls and stores to as well: calls of the standard library word for word, calls of the project's own
functions with other tensors and numbers, and no text that the original does not have.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend.analysis.torch_facts import TorchFacts
from graphmend.model.gates import allowed
from graphmend.model.gates.original import WHOLE, Original, bindings, head_of, is_number, parameters
from graphmend.model.gates.text import Function, Unfit, parsed

_PLAIN = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.Return, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.While,
    ast.If, ast.Expr, ast.Pass, ast.Break, ast.Continue, ast.BoolOp, ast.NamedExpr, ast.BinOp, ast.UnaryOp,
    ast.Lambda, ast.IfExp, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
    ast.Compare, ast.Call, ast.Constant, ast.Attribute, ast.Subscript, ast.Starred, ast.Name, ast.List, ast.Tuple,
    ast.Slice, ast.comprehension, ast.JoinedStr, ast.FormattedValue, ast.arguments, ast.arg, ast.keyword,
    ast.withitem, ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop,
)  # fmt: skip
_PATTERNS = (ast.match_case, ast.pattern)
_TEXT_TAKERS = ("torch.", "math.")


def read(answer: str, original: Original, facts: TorchFacts) -> Function:
    """The function that an answer holds; raises `Unfit` with the sentence that says why it must not be used."""
    function = parsed(answer, original.source)
    _signature(function, original.function)
    _Names(function, original, facts).check()
    return function


def _signature(function: Function, original: Function) -> None:
    """Name, kind, parameters, annotations, decorators and docstring are the original's."""
    if type(function) is not type(original) or function.name != original.name:
        raise Unfit(f"the answer is not the function {original.name}")
    for what, of in (
        ("parameters", lambda f: ast.dump(f.args)),
        ("return annotation", lambda f: ast.dump(f.returns) if f.returns is not None else ""),
        ("decorators", lambda f: [ast.dump(d) for d in f.decorator_list]),
        ("type parameters", lambda f: [ast.dump(t) for t in getattr(f, "type_params", ())]),
        ("docstring", lambda f: ast.get_docstring(f)),
    ):
        if of(function) != of(original):
            raise Unfit(f"the answer changes the {what} of {original.name}")


class _Names:
    """One pass over a replacement."""

    def __init__(self, function: Function, original: Original, facts: TorchFacts) -> None:
        self.function = function
        self.original = original
        self.facts = facts
        self.bindings = bindings(function)
        self.scoped = {*self.bindings, *parameters(function)}
        nodes = list(ast.walk(function))
        calls = [n for n in nodes if isinstance(n, ast.Call)]
        self.inner = {n.name for n in nodes if isinstance(n, ast.FunctionDef) and n is not function}
        self.called = {n for call in calls for n in ast.walk(call.func)}
        self.given = {n: call for call in calls for n in (*call.args, *(keyword.value for keyword in call.keywords))}

    def check(self) -> None:
        """The body alone: the head is the original's."""
        self._rebinding()
        for statement in self.function.body:
            for node in self._outside_verbatim(statement):
                self._form(node)

    def _outside_verbatim(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes below and with `node`, less calls, raised exceptions and imports that stand as they did."""
        if isinstance(node, WHOLE) and self._is_verbatim(node):
            return
        yield node
        for child in ast.iter_child_nodes(node):
            yield from self._outside_verbatim(child)

    def _is_verbatim(self, node: ast.AST) -> bool:
        """The same words, of names that are bound as in the original, and so in turn for what binds them. A name that
        is bound to another result of torch is a tensor still, and no path or command.
        """
        if ast.unparse(node) not in self.original.whole:
            return False
        waiting = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        seen: set[str] = set()
        while waiting:
            name = waiting.pop()
            seen.add(name)
            for binder in self.bindings.get(name, ()):
                if ast.unparse(binder) not in self.original.binders(name):
                    if not self._gives_tensor(binder, name, frozenset()):
                        return False
                else:
                    waiting |= {n.id for n in ast.walk(binder) if isinstance(n, ast.Name)} - seen
        return True

    def _gives_tensor(self, node: ast.AST, name: str, asked: frozenset[str]) -> bool:
        """Whether an expression is a result of torch, or of a function that gave the name its value in the original."""
        match node:
            case ast.Assign(value=value) | ast.NamedExpr(value=value):
                return self._gives_tensor(value, name, asked)
            case ast.Call(func=ast.Attribute() as func) if self._qualified(func) is not None:
                return True
            case ast.Call(func=func) if ast.unparse(func) in self.original.callees_bound_to(name):
                return True
            case ast.Call(func=ast.Attribute(value=value)) | ast.Subscript(value=value) | ast.Attribute(value=value):
                return self._gives_tensor(value, name, asked)
            case ast.BinOp(left=left, right=right) | ast.IfExp(body=left, orelse=right):
                return self._gives_tensor(left, name, asked) or self._gives_tensor(right, name, asked)
            case ast.Name(id=read) if read in self.bindings and read not in asked:
                return all(
                    ast.unparse(binder) in self.original.binders(read)
                    or self._gives_tensor(binder, read, asked | {read})
                    for binder in self.bindings[read]
                ) and any(self._gives_tensor(binder, read, asked | {read}) for binder in self.bindings[read])
            case ast.Name(id=read):
                return read in asked
        return False

    def _rebinding(self) -> None:
        for name in self.bindings:
            if name in self.original.bindings:
                continue
            known = name in self.original.imports or name in allowed.BUILTINS or name == self.original.first
            if (
                known
                or name in self.original.callees
                or (name in self.original.chains and name not in self.original.parameters)
            ):
                raise Unfit(f"the answer binds {name!r}, which means something else there")
            if name.startswith("__"):
                raise Unfit(f"the answer binds {name!r}")

    def _form(self, node: ast.AST) -> None:
        head = head_of(node)
        if head is not None:
            if head not in self.original.heads:
                raise Unfit(f"the answer has `{head.splitlines()[0][:80]}`, which the original has not")
        elif not isinstance(node, _PLAIN) and not (isinstance(node, _PATTERNS) and "Match" in self.original.heads):
            raise Unfit(f"the answer has a form that is not read: {type(node).__name__}")
        match node:
            case ast.Constant(value=str() | bytes()):
                self._text(node)
            case ast.JoinedStr() if ast.unparse(node) not in self.original.formatted:
                raise Unfit("the answer formats a text that the original does not")
            case ast.Name(ctx=ast.Load()):
                self._name(node)
            case ast.Attribute():
                self._attribute(node)
            case ast.Subscript(ctx=ast.Store() | ast.Del()):
                self._item_store(node)
            case ast.Call():
                self._call(node)

    def _name(self, node: ast.Name) -> None:
        name = node.id
        if name in self.scoped or name in allowed.BUILTINS:
            return
        if self.original.is_module(name) in allowed.MODULES:
            return
        if name not in self.original.chains:
            raise Unfit(f"the answer reads {name!r}, which the original does not")
        self._not_handed_on(node)

    def _attribute(self, node: ast.Attribute) -> None:
        chain = ast.unparse(node)
        if not isinstance(node.ctx, ast.Load):
            if chain not in self.original.stores:
                raise Unfit(f"the answer stores to {chain!r}, which the original does not")
            return
        qualified = self._qualified(node)
        if qualified is not None:
            if qualified in allowed.MODULES or allowed.function(qualified, self.facts):
                return
            if chain not in self.original.chains:
                raise Unfit(f"{chain} is not among the functions that a replacement may use")
            return
        if chain in self.original.chains:
            self._not_handed_on(node)
            return
        if isinstance(node.value, ast.Name) and node.value.id == self.original.first == "self":
            raise Unfit(f"the answer reads {chain!r}, which the original does not")
        if not allowed.member(node.attr, self.facts):
            raise Unfit(f"{chain} reads {node.attr!r}, which is no attribute of tensors that a replacement may use")

    def _not_handed_on(self, node: ast.expr) -> None:
        """A function that the original only calls is no value to hand around."""
        chain = ast.unparse(node)
        if chain in self.original.callees and chain not in self.original.handed and node not in self.called:
            raise Unfit(f"the answer hands {chain!r} on, which the original only calls")

    def _item_store(self, node: ast.Subscript) -> None:
        base = ast.unparse(node.value)
        root = _root(node.value)
        if base in self.original.stored_items or (isinstance(node.value, ast.Name) and root in self.scoped):
            return
        raise Unfit(f"the answer stores into {base!r}, which the original does not")

    def _call(self, node: ast.Call) -> None:
        callee = ast.unparse(node.func)
        if isinstance(node.func, ast.Name) and (callee in self.inner or callee in allowed.BUILTINS):
            return
        if isinstance(node.func, ast.Attribute):
            qualified = self._qualified(node.func)
            if qualified is not None and allowed.function(qualified, self.facts):
                return
            if qualified is None and allowed.member(node.func.attr, self.facts) and callee not in self.original.callees:
                return
        if callee not in self.original.callees:
            raise Unfit(f"the answer calls {callee}, which the original does not")
        root = _root(node.func)
        if root is None or self.original.is_foreign(callee):
            raise Unfit(f"the answer calls {callee} with other arguments than the original")
        texts = {ast.unparse(binder) for binder in self.bindings.get(root, ())}
        if not texts <= self.original.binders(root):
            raise Unfit(f"the answer calls {callee} after binding {root!r} to something else")

    def _text(self, node: ast.Constant) -> None:
        if node.value in self.original.strings or node.value == ast.get_docstring(self.function, clean=False):
            return
        call = self.given.get(node)
        if call is not None and isinstance(call.func, ast.Attribute):
            qualified = self._qualified(call.func)
            if qualified is not None and qualified.startswith(_TEXT_TAKERS):
                return
        raise Unfit(f"the answer has the text {str(node.value)[:40]!r}, which the original has not")

    def _qualified(self, node: ast.Attribute) -> str | None:
        """`torch.nn.functional.pad` for `F.pad`; None for what hangs on a value, or on another module."""
        parts: list[str] = []
        value: ast.expr = node
        while isinstance(value, ast.Attribute):
            parts.append(value.attr)
            value = value.value
        if not isinstance(value, ast.Name) or value.id in self.scoped:
            return None
        root = self.original.is_module(value.id)
        if root is None or root.partition(".")[0] not in ("torch", "math"):
            return None
        return ".".join([root, *reversed(parts)])


def lost_reads(function: Function, original: Original) -> list[str]:
    """The parameters and attributes of `self` that the original reads and the replacement does not.

    What is not read can't matter to the result: a replacement that reads less has made something up.
    """
    chains = {ast.unparse(n) for n in ast.walk(function) if isinstance(n, (ast.Name, ast.Attribute))}
    wanted = [name for name in original.parameters if name in original.chains]
    own = f"{original.first}." if original.first is not None else " "
    wanted += sorted(chain for chain in original.chains if chain.startswith(own) and chain.count(".") == 1)
    return [chain for chain in wanted if chain not in chains]


def new_numbers(function: Function, original: Original) -> list[str]:
    """The numbers of a replacement that the original has not, as text; small ones that any rewrite needs aside."""
    found = {n.value for n in ast.walk(function) if isinstance(n, ast.Constant) and is_number(n.value)}
    return sorted(repr(number) for number in found - original.numbers - {-1, 0, 1, 2})


def _root(node: ast.expr) -> str | None:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
