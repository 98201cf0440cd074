"""May a tensor of one dimension stand where a list of places stands? Follows the list to all that is done with it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import stores
from graphmend.transforms.code.expression_text import Code, shortened
from graphmend.transforms.code.qualified_names import called, constant, is_tensor, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.legality.memory import changed_in_place, shares
from graphmend.transforms.legality.numbers.counterparts import Counterpart
from graphmend.transforms.legality.scalar_uses import NeedsPythonNumberError, ScalarUses
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


class NeedsListError(Exception):
    """Something does with a list what a tensor cannot do; the message says what."""


_MAKES = ("torch.tensor", "torch.as_tensor", "torch.LongTensor")
_DEEPEST = 4


class ListUses:
    """The uses of a list of whole numbers that becomes a tensor of them."""

    def __init__(self, facts: FunctionFacts, depth: int = 0) -> None:
        self.facts = facts
        self.texts: dict[ast.expr, str] = {}
        """What is written otherwise of the function itself."""
        self.counterparts: dict[ast.expr, Counterpart] = {}
        """What else is, because a place is a 0-d tensor."""
        self.one_by_one = False
        """Is something done with its places one by one, as tensors without dimensions?"""
        self.differences: list[Difference] = []
        self._depth = depth
        self._code = Code(facts.source)

    @answers("numbers")
    def follow(self, node: ast.expr) -> None:
        """Goes up from an expression whose value would become a tensor."""
        try:
            self._follow(node)
        except NeedsPythonNumberError as error:
            raise NeedsListError(str(error)) from error

    @answers("numbers")
    def named(self, name: str, behind: ast.stmt) -> None:
        """Follows what a name is bound to up to a statement to the reads behind it."""
        try:
            self._named(name, behind)
        except NeedsPythonNumberError as error:
            raise NeedsListError(str(error)) from error

    def _follow(self, node: ast.expr) -> None:
        facts, above = self.facts, self.facts.parent(node)
        match above:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is node:
                if stores(facts, name) != 1:
                    raise NeedsListError(f"`{name}` is bound in several places")
                self._named(name, above)
            case ast.Subscript(value=tensor, slice=index) if index is node and is_tensor(facts, tensor):
                pass
            case ast.Tuple() if self._is_index(above, node):
                pass
            case ast.Subscript(value=value, slice=ast.Slice(step=step), ctx=ast.Load()) if value is node:
                if step is None or (isinstance(known := constant(step), int) and known > 0):
                    self._follow(above)
                elif constant(step) == -1 and above.slice.lower is above.slice.upper is None:  # type: ignore[attr-defined]
                    self._flips(above, node)
                else:
                    raise NeedsListError(f"`{shortened(above)}` takes steps backwards")
            case ast.Subscript(value=value, ctx=ast.Load()) if value is node:
                uses = ScalarUses(facts, "int64", rewrites=True)
                uses.follow(above)
                self._take(uses)
            case ast.Call(args=[one]) if one is node and called(facts, above, "builtins.len"):
                pass
            case ast.Call(args=[one], keywords=[]) if one is node and called(facts, above, "builtins.list"):
                self.texts[above] = self._code.text(node)
                self._follow(above)
            case ast.Call(args=[one], keywords=[]) if one is node and called(facts, above, "builtins.reversed"):
                self._flips(above, node)
            case ast.Call(args=[one]) if one is node and called(facts, above, *_MAKES):
                self._made(above, node)
            case ast.For(target=ast.Name(id=name), iter=of) if of is node:
                self._each(name)
            case ast.comprehension(target=ast.Name(id=name), iter=of) if of is node:
                self._each(name)
            case ast.Return():
                self._returned(above)
            case _:
                raise NeedsListError(f"`{shortened(above or node)}` needs a list of Python numbers")

    def _is_index(self, above: ast.Tuple, node: ast.expr) -> bool:
        outer = self.facts.parent(above)
        plain = all(e is node or isinstance(e, (ast.Slice, ast.Constant)) for e in above.elts)
        return (
            isinstance(outer, ast.Subscript) and outer.slice is above and plain and is_tensor(self.facts, outer.value)
        )

    def _named(self, name: str, behind: ast.stmt) -> None:
        facts = self.facts
        if changed_in_place(facts, name, behind=behind) and any(
            isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store) and _is(n.value, name)
            for n in nodes_in(facts.function)
        ):
            raise NeedsListError(f"`{name}` is changed in place")
        place = behind.end_lineno or 0, behind.end_col_offset or 0
        for node in nodes_in(facts.function):
            if _is(node, name) and isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                if (node.lineno, node.col_offset) < place:
                    looped = any(isinstance(a, (ast.For, ast.While)) for a in facts.ancestors(behind))
                    if looped or not any(n is node for n in nodes_in(behind)):
                        raise NeedsListError(f"`{name}` is read in front of the order as well")
                    continue
                self._follow(node)

    def _flips(self, whole: ast.expr, node: ast.expr) -> None:
        self.texts[whole] = f"{self._code.operand(node)}.flip(0)"
        self._follow(whole)

    def _made(self, call: ast.Call, node: ast.expr) -> None:
        """`torch.tensor(order)` is the order itself, or a copy where another name may have it."""
        facts, above = self.facts, self.facts.parent(call)
        text = self._code.operand(node)
        index = isinstance(above, ast.Subscript) and above.slice is call
        given = isinstance(above, (ast.Call, ast.keyword)) and self._is_only_read(above)
        if not (index or given):
            text += ".clone()"
        typed = any(k.arg == "dtype" for k in call.keywords) or called(facts, call, "torch.LongTensor") is not None
        if not typed:
            says = f"`{shortened(call)}` of no places is of whole numbers"
            self.differences.append(Difference("dtype", says))
        for keyword in call.keywords:
            if keyword.arg == "device":
                text += f".to({self._code.argument(keyword.value)})"
            elif keyword.arg != "dtype" or qualified(self.facts, keyword.value) not in ("torch.long", "torch.int64"):
                raise NeedsListError(f"`{shortened(call)}` makes another tensor of it")
        self.texts[call] = text

    def _is_only_read(self, above: ast.Call | ast.keyword) -> bool:
        """Does a call compute something new of what it is given?"""
        call = self.facts.parent(above) if isinstance(above, ast.keyword) else above
        return isinstance(call, ast.Call) and not effects(self.facts, call) and shares(self.facts, call).fresh

    def _each(self, name: str) -> None:
        uses = ScalarUses(self.facts, "int64", rewrites=True)
        uses.name(name)
        self._take(uses)

    def _take(self, uses: ScalarUses) -> None:
        if uses.also:
            raise NeedsListError(f"`{shortened(uses.also[0])}` stays a Python number")
        self.one_by_one = True
        self.counterparts |= uses.counterparts
        self.differences += uses.differences

    def _returned(self, statement: ast.Return) -> None:
        facts = self.facts
        calls = [c for c in facts.calls() if isinstance(c.node, ast.Call)]
        if not calls or facts.function.decorator_list or self._depth > _DEEPEST:
            raise NeedsListError(f"`{shortened(statement)}` gives a list to who is not known")
        for caller in calls:
            outer = ListUses(caller, self._depth + 1)
            assert isinstance(caller.node, ast.Call)
            outer._follow(caller.node)
            if (outer.texts or outer.counterparts) and caller.source.path != facts.source.path:
                raise NeedsListError(f"`{facts.function.name}` is called in another file")
            self.texts |= outer.texts
            self.counterparts |= outer.counterparts
            self.one_by_one |= outer.one_by_one
            self.differences += outer.differences
        says = f"`{facts.function.name}` gives a tensor where it gave a list"
        self.differences.append(Difference("callers", says))


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
