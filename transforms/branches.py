"""If-conversion: what a block of statements would bind, change and return, as values that can be selected afterwards.

A block qualifies when it only computes: assignments to names, in-place methods of tensors, `pass`, nested
`if`s, and one `return` at its end. Whatever else stands in it is a reason to refuse.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graphmend.analysis.values import Const, Static, Tensor
from graphmend.transforms import torch_names as known
from graphmend.transforms.alike import Meta, Metas, compare
from graphmend.transforms.bindings import alive, fresh, reads
from graphmend.transforms.legality import leak, roots, speculate
from graphmend.transforms.names import constant, is_tensor
from graphmend.transforms.predicate import Predicates, depends

if TYPE_CHECKING:
    from graphmend.analysis.facts import FunctionFacts

#: the name under which a returned value is kept
RETURN = "return"


class NotSelectableError(Exception):
    """A block that does more than compute; the message is the sentence to refuse with."""


@dataclass(frozen=True)
class Choice:
    """A value that one side gives a name: its text there, and what it is."""

    text: str
    node: ast.expr
    meta: Meta | None
    items: tuple[Choice, ...] | None = None
    """The parts of a tuple display."""


@dataclass
class Block:
    """What a block does, seen from its entry."""

    facts: FunctionFacts
    predicates: Predicates
    suffix: str
    """What temporary names of this block end in."""
    whole: ast.stmt
    """The statement that is converted."""
    last: ast.stmt
    """The last statement that is converted: names that live behind it are outputs."""
    others: set[str] = field(default_factory=set)
    """Names that the other side binds."""
    prelude: list[str] = field(default_factory=list)
    values: dict[str, Choice] = field(default_factory=dict)
    changes: dict[str, Choice] = field(default_factory=dict)
    evaluated: list[ast.expr] = field(default_factory=list)
    replace: dict[ast.expr, str] = field(default_factory=dict)
    bound: dict[str, Meta] = field(default_factory=dict)

    def run(self, statements: Sequence[ast.stmt]) -> Block:
        """Takes in the statements of a block, in order."""
        for i, statement in enumerate(statements):
            if RETURN in self.values:
                raise NotSelectableError("code stands behind a `return`")
            self._step(statement, statements[i + 1 :])
        found = speculate(self.facts, *self.evaluated)
        if found.blockers:
            raise NotSelectableError(found.blockers[0])
        self.predicates.differences += found.differences
        return self

    def _step(self, statement: ast.stmt, rest: Sequence[ast.stmt]) -> None:
        match statement:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._assign(name, value, rest)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self._assign(name, value, rest)
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(
                values
            ):
                names = [t.id for t in targets if isinstance(t, ast.Name)]
                if len(names) < len(targets) or any(isinstance(v, ast.Starred) for v in values):
                    raise NotSelectableError(f"`{_short(statement)}` assigns to more than names")
                choices = [self.choice(v) for v in values]
                for name, choice in zip(names, choices, strict=True):
                    self._bind(name, choice, rest)
            case ast.AugAssign(target=ast.Name(id=name) as target, value=value):
                self._augmented(name, target, value, statement, rest)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=receiver, attr=attr)) as call):
                self._in_place(receiver, attr, call, rest)
            case ast.Return(value=ast.expr() as value):
                self.values[RETURN] = self.choice(value)
            case ast.Return():
                raise NotSelectableError("one side returns None")
            case ast.If():
                self._nested(statement, rest)
            case _:
                raise NotSelectableError(f"`{_short(statement)}` does more than compute a value")

    def _assign(self, name: str, value: ast.expr, rest: Sequence[ast.stmt]) -> None:
        self._bind(name, self.choice(value), rest)

    def _bind(self, name: str, choice: Choice, rest: Sequence[ast.stmt]) -> None:
        """Gives a name a value: at once where the code behind needs it, else when both sides are selected from."""
        before = name in self.facts.before(self.whole)
        output = alive(self.facts, name, self.last)
        needed = name in reads(*rest) or any(name in _assigned(s) for s in rest)
        if not output and not needed:
            return
        if needed or (not output and not before):
            local = not before and not output and name not in self.others
            kept = name if local else fresh(self.facts, f"{name}_{self.suffix}", self.predicates.taken)
            self.predicates.taken.append(kept)
            self.prelude.append(f"{kept} = {choice.text}")
            choice = Choice(kept, choice.node, choice.meta)
        for later in rest:
            for node in ast.walk(later):
                if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                    self.replace[node] = choice.text
        if choice.meta is not None:
            self.bound[name] = choice.meta
        else:
            self.bound.pop(name, None)
        if output:
            self.values[name] = choice

    def choice(self, node: ast.expr) -> Choice:
        code = self.predicates.code
        if isinstance(node, ast.Tuple) and not any(isinstance(e, ast.Starred) for e in node.elts):
            return Choice(code.argument(node, self.replace), node, None, tuple(self.choice(e) for e in node.elts))
        self.evaluated.append(node)
        if isinstance(node, ast.IfExp) and depends(self.facts, node.test):
            raise NotSelectableError(f"`{_short(node)}` branches on a tensor itself")
        return Choice(code.argument(node, self.replace), node, Metas(self.facts, self.bound).of(node))

    def _augmented(
        self, name: str, target: ast.Name, value: ast.expr, statement: ast.AugAssign, rest: Sequence[ast.stmt]
    ) -> None:
        """`x += v`: of a tensor, a change in place."""
        if not isinstance(self.facts.before(self.whole).get(name), Tensor) or name in self.bound:
            raise NotSelectableError(
                f"`{name}` is not known to be a tensor that `{_short(statement)}` changes in place"
            )
        code = self.predicates.code
        sign = code.source.segment(code.source.span(statement))
        operator = sign[len(name) :].strip().partition("=")[0]
        self.evaluated.append(value)
        text = f"{name} {operator} {code.operand(value, self.replace)}"
        self._change(name, Choice(text, ast.BinOp(ast.Name(name), statement.op, value), None), rest)

    def _in_place(self, receiver: ast.expr, attr: str, call: ast.Call, rest: Sequence[ast.stmt]) -> None:
        """`t.method_(...)`: a change of `t`, written as the value that `t` has afterwards."""
        plain = attr[:-1]
        if (
            not attr.endswith("_")
            or attr.endswith("__")
            or not is_tensor(self.facts, receiver)
            or not _is_path(receiver)
        ):
            raise NotSelectableError(f"`{_short(call)}` may have side effects")
        code = self.predicates.code
        target = code.text(receiver, self.replace)
        arguments = [code.argument(a, self.replace) for a in call.args]
        arguments += [f"{k.arg}={code.argument(k.value, self.replace)}" for k in call.keywords if k.arg]
        self.evaluated += [*call.args, *(k.value for k in call.keywords)]
        imports = self.predicates.imports
        if plain == "copy" and len(call.args) == 1 and not call.keywords:
            text = arguments[0]
        elif plain == "zero" and not call.args:
            text = f"{imports.name('torch.zeros_like')}({target})"
        elif plain == "fill" and len(call.args) == 1 and isinstance(constant(call.args[0]), (int, float)):
            text = f"{imports.name('torch.full_like')}({target}, {arguments[0]})"
        elif plain in known.ELEMENTWISE | known.ARITHMETIC | {"masked_fill", "lerp", "addcmul", "addcdiv"}:
            text = f"{target}.{plain}({', '.join(arguments)})"
        else:
            raise NotSelectableError(f"`{_short(call)}` has no form that leaves its tensor alone")
        self._change(target, Choice(text, call, None), rest)

    def _change(self, target: str, choice: Choice, rest: Sequence[ast.stmt]) -> None:
        root = target.partition(".")[0]
        if target in self.changes or root in self.changes:
            raise NotSelectableError(f"`{target}` is changed in place twice")
        if any(target in ast.unparse(s) for s in rest):
            raise NotSelectableError(f"`{target}` is used again after it is changed in place")
        if any(target in c.text for c in self.values.values()):
            raise NotSelectableError(f"`{target}` is used before it is changed in place")
        self.changes[target] = choice

    def _nested(self, statement: ast.If, rest: Sequence[ast.stmt]) -> None:
        """An `if` inside the block: of its two sides one value each."""
        sides = []
        for branch, others in ((statement.body, statement.orelse), (statement.orelse, statement.body)):
            side = Block(
                self.facts,
                self.predicates,
                self.suffix,
                self.whole,
                self.last,
                self.others | _names(others),
                self.prelude,
            )
            side.replace, side.bound = dict(self.replace), dict(self.bound)
            sides.append(side.run(branch))
        one, two = sides
        if one.changes or two.changes or (RETURN in one.values) != (RETURN in two.values):
            raise NotSelectableError(f"`if {_short(statement.test)}` inside the branch does more than bind names")
        tensor = depends(self.facts, statement.test)
        self.evaluated += [] if tensor else [statement.test]
        test = (
            self.predicates.of(statement.test, self.replace)
            if tensor
            else self.predicates.code.operand(statement.test, self.replace)
        )
        for name in dict.fromkeys([*one.values, *two.values]):
            a, b = one.values.get(name) or self.now(name), two.values.get(name) or self.now(name)
            text = select(self, test, a, b) if tensor else f"({a.text} if {test} else {b.text})"
            meta = a.meta if a.meta == b.meta else None
            if name == RETURN:
                self.values[name] = Choice(text, a.node, meta)
            else:
                self._bind(name, Choice(text, a.node, meta or a.meta), rest)

    def now(self, name: str) -> Choice:
        """The value that a name has at this place of the block."""
        if name in self.values:
            return self.values[name]
        return incoming(self.facts, self.whole, name)


def incoming(facts: FunctionFacts, whole: ast.stmt, name: str) -> Choice:
    """The value that a name has before a statement."""
    value = facts.before(whole).get(name)
    node = ast.Name(name, ast.Load())
    if value is None:
        raise NotSelectableError(f"`{name}` may not be bound before the branch")
    if isinstance(value, Static):
        kind = "None" if isinstance(value, Const) and value.value is None else "a Python value"
        raise NotSelectableError(f"`{name}` is {kind} before the branch, which cannot be selected")
    leaf = ("leaf", name)
    if not isinstance(value, Tensor):
        return Choice(name, node, Meta(leaf, leaf, proven=False))
    exact = value.dtype not in ("int", "float", "complex", None)
    dtype = value.dtype if exact else (value.dtype, leaf) if value.dtype else leaf
    shape = () if value.rank == 0 else value.shape if value.shape is not None else leaf
    return Choice(name, node, Meta(shape, dtype))


def select(block: Block, test: str, a: Choice, b: Choice) -> str:
    """`torch.where(test, a, b)`, once both are known to be alike; tuples are selected from part by part."""
    if a.text == b.text:
        return a.text
    if a.items is not None and b.items is not None and len(a.items) == len(b.items):
        parts = [select(block, test, x, y) for x, y in zip(a.items, b.items, strict=True)]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    check_alike(block, a, b)
    where = block.predicates.imports.name("torch.where")
    return f"{where}({test}, {a.text}, {b.text})"


def check_alike(block: Block, a: Choice, b: Choice) -> None:
    """Refuses values of different shape or dtype, and names what is not proven."""
    likeness = compare(a.text, a.meta, b.text, b.meta)
    if likeness.blocker:
        raise NotSelectableError(likeness.blocker)
    block.predicates.differences += likeness.differences


def gradient_differences(facts: FunctionFacts, statement: ast.stmt, sides: Sequence[Sequence[ast.expr]]) -> list[str]:
    """What gradients see of a selection, for the expressions that each side evaluates."""
    if facts.gradients(statement) == "off":
        return []
    found: list[str] = []
    levels = {leak(facts, e) for side in sides for e in side}
    if "anywhere" in levels:
        found.append("gradients may become NaN where the derivative of the side not taken is not finite")
    elif "at infinity" in levels:
        found.append("gradients may become NaN where the side not taken holds infinite or NaN values")
    flows = [set().union(*(roots(facts, e) for e in side)) if side else set() for side in sides]
    if len(flows) == 2 and flows[0] != flows[1] and all(flows):
        found.append("inputs that only the side not taken uses get zeros for gradients instead of None")
    return found


def _assigned(statement: ast.stmt) -> set[str]:
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _names(statements: Sequence[ast.stmt]) -> set[str]:
    return {n for s in statements for n in _assigned(s)}


def _is_path(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 50 else f"{text[:47]}..."
