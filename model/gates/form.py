"""Form and names of a replacement: an allow-list over its syntax tree.

A replacement may do with tensors, numbers and containers what it likes. Whatever else it names, calls or stores to, the
original names, calls and stores to as well: calls of the standard library word for word, calls of the project's own
functions with other tensors and numbers, and no text that the original does not have.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterator

from graphmend.analysis.torch_facts import TorchFacts
from graphmend.model.gates import allowed
from graphmend.model.gates.original import WHOLE, Original, bindings, head_of, is_number, parameters
from graphmend.model.gates.outside import Outside
from graphmend.model.gates.tensors import tensors
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
_OPTION = re.compile(r"[\w ,.:>-]{1,48}")
"""A device, a mode, the equation of an einsum."""


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
        self.text: Callable[[ast.AST], str] = functools.cache(ast.unparse)
        self.original = original
        self.facts = facts
        self.bindings = bindings(function)
        self.scoped = {*self.bindings, *parameters(function)}
        self.imported = {name for name, binders in self.bindings.items() if original.imports_alone(name, binders)}
        nodes = list(ast.walk(function))
        calls = [n for n in nodes if isinstance(n, ast.Call)]
        self.inner = {name for name, binders in self.bindings.items() if all(_defines(b, name) for b in binders)}
        self.bases = {n.value for n in nodes if isinstance(n, ast.Attribute)}
        self.filled = {name for n in nodes if (name := _filled(n)) is not None and self.text(n) not in original.fills}
        self.called = {n for call in calls for n in ast.walk(call.func)}
        self.outside = Outside(function, original, self.bindings, self._is_torch)
        self.tensors = tensors(self.bindings, original, self._is_torch, self.outside.came)
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
        if self.text(node) not in self.original.whole:
            return False
        waiting = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        seen: set[str] = set()
        while waiting:
            name = waiting.pop()
            seen.add(name)
            if name in self.filled and self.outside.came(name):
                return False
            for binder in self.bindings.get(name, ()):
                if self.text(binder) in self.original.binders(name):
                    waiting |= {n.id for n in ast.walk(binder) if isinstance(n, ast.Name)} - seen
                elif name not in self.tensors:
                    return False
        return True

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
            case ast.JoinedStr() if self.text(node) not in self.original.formatted:
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
        if name in self.scoped - self.imported or name in allowed.BUILTINS:
            return
        if self.original.is_module(name) in allowed.MODULES:
            return
        if name not in self.original.chains:
            raise Unfit(f"the answer reads {name!r}, which the original does not")
        if node not in self.bases and node not in self.called and name not in self.original.handed:
            raise Unfit(f"the answer hands {name!r} on, which the original does not")

    def _attribute(self, node: ast.Attribute) -> None:
        chain = self.text(node)
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
        chain = self.text(node)
        if node in self.called or node in self.bases or chain in self.original.handed:
            return
        if chain in self.original.callees:
            raise Unfit(f"the answer hands {chain!r} on, which the original only calls")

    def _item_store(self, node: ast.Subscript) -> None:
        base = self.text(node.value)
        root = _root(node.value)
        if base in self.original.stored_items or (isinstance(node.value, ast.Name) and root in self.scoped):
            return
        raise Unfit(f"the answer stores into {base!r}, which the original does not")

    def _call(self, node: ast.Call) -> None:
        callee = self.text(node.func)
        if isinstance(node.func, ast.Name) and callee in self.inner:
            return
        if isinstance(node.func, ast.Name) and callee in allowed.BUILTINS:
            self._builtin(node, callee)
            return
        if isinstance(node.func, ast.Attribute):
            qualified = self._qualified(node.func)
            if qualified is not None and allowed.function(qualified, self.facts):
                return
            if qualified is None and allowed.member(node.func.attr, self.facts) and not self._is_outside(node.func):
                if (
                    callee in self.original.callees
                    or not allowed.mutates(node.func.attr)
                    or self._is_own(node.func.value)
                ):
                    return
                raise Unfit(f"the answer calls {callee}, which changes what the original does not")
        if callee not in self.original.callees:
            raise Unfit(f"the answer calls {callee}, which the original does not")
        root = _root(node.func)
        if root is None or self.original.is_foreign(callee) or self.outside.came(root):
            raise Unfit(f"the answer calls {callee} with other arguments than the original")
        texts = {self.text(binder) for binder in self.bindings.get(root, ())}
        if not texts <= self.original.binders(root):
            raise Unfit(f"the answer calls {callee} after binding {root!r} to something else")
        for given in (*node.args, *(keyword.value for keyword in node.keywords)):
            if self.outside.reaches(given) and self.text(given) not in self.original.arguments.get(callee, ()):
                raise Unfit(f"the answer hands {self.text(given)} to {callee}, which the original does not")

    def _builtin(self, node: ast.Call, name: str) -> None:
        """A builtin that calls what it is given calls functions of the answer's own, and builtins."""
        functions = [keyword.value for keyword in node.keywords if keyword.arg in ("key", None)]
        functions += node.args[:1] if name in ("map", "filter") else []
        for function in functions:
            own = isinstance(function, ast.Name) and (function.id in self.inner or function.id in allowed.BUILTINS)
            if not own and not isinstance(function, (ast.Lambda, ast.Constant)):
                raise Unfit(f"the answer has {name} call {self.text(function)}")

    def _is_torch(self, call: ast.Call) -> bool:
        qualified = self._qualified(call.func) if isinstance(call.func, ast.Attribute) else None
        return qualified is not None and allowed.function(qualified, self.facts)

    def _is_outside(self, function: ast.Attribute) -> bool:
        return self.outside.is_foreign(function) or self.outside.reaches(function.value)

    def _is_own(self, node: ast.expr) -> bool:
        """Whether a value may be changed in place: the original does, or it is a parameter or local."""
        if self.text(node) in self.original.changed:
            return True
        while isinstance(node, ast.Subscript):
            node = node.value
        return not isinstance(node, ast.Attribute) and not (isinstance(node, ast.Name) and node.id not in self.scoped)

    def _text(self, node: ast.Constant) -> None:
        if node.value in self.original.strings or node.value == ast.get_docstring(self.function, clean=False):
            return
        call = self.given.get(node)
        if call is not None and isinstance(call.func, ast.Attribute):
            qualified = self._qualified(call.func)
            if qualified is not None and qualified.startswith(_TEXT_TAKERS) and _OPTION.fullmatch(str(node.value)):
                return
        raise Unfit(f"the answer has the text {str(node.value)[:40]!r}, which the original has not")

    def _qualified(self, node: ast.Attribute) -> str | None:
        """`torch.nn.functional.pad` for `F.pad`; None for what hangs on a value, or on another module."""
        parts: list[str] = []
        value: ast.expr = node
        while isinstance(value, ast.Attribute):
            parts.append(value.attr)
            value = value.value
        if not isinstance(value, ast.Name) or value.id in self.scoped - self.imported:
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
    if original.first == "self":
        wanted += sorted(chain for chain in original.chains if chain.startswith("self.") and chain.count(".") == 1)
    return [chain for chain in wanted if chain not in chains]


def hard_coded(function: Function, original: Original) -> str | None:
    """A call out of the project, whose value the original uses, that the replacement has lost while it has new numbers:
    one of them may be what the call gave here and now. None where there is none.
    """
    if not new_numbers(function, original):
        return None
    called = {ast.unparse(n.func) for n in ast.walk(function) if isinstance(n, ast.Call)}
    lost = sorted(original.callees - called - original.dropped - allowed.BUILTINS)
    return next((callee for callee in lost if original.is_foreign(callee)), None)


def new_numbers(function: Function, original: Original) -> list[str]:
    """The numbers of a replacement that the original has not, as text; small ones that any rewrite needs aside."""
    found = {n.value for n in ast.walk(function) if isinstance(n, ast.Constant) and is_number(n.value)}
    return sorted(repr(number) for number in found - original.numbers - {-1, 0, 1, 2})


def _filled(node: ast.AST) -> str | None:
    """The name of a container that a statement or call puts something into; None for any other."""
    match node:
        case ast.Assign(targets=[ast.Subscript(value=base)]) | ast.AugAssign(target=ast.Subscript(value=base)):
            return _root(base)
        case ast.Call(func=ast.Attribute(value=base, attr=attr)) if allowed.mutates(attr):
            return _root(base)
    return None


def _defines(binder: ast.AST, name: str) -> bool:
    """Whether a name is bound by the `def` of a function of that name, and not by one of its parameters."""
    return isinstance(binder, ast.FunctionDef) and binder.name == name and name not in parameters(binder)


def _root(node: ast.expr) -> str | None:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
