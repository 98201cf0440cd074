"""Where a mask that masks nothing may as well be absent: what takes None for a mask, and tests that ask for None."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.program.entities import Function, Instance
from graphmend.analysis.resolution.classes import mro
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.liveness import locals_of
from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.legality.gradients.sides import carries, lost
from graphmend.transforms.legality.memory import changed_in_place, shares
from graphmend.transforms.legality.neutral.binding import SCOPES, Binding, binding
from graphmend.transforms.legality.neutral.elements import Element, number
from graphmend.transforms.legality.neutral.takers import TellsError, called_unrecorded, given_for_none, takes
from graphmend.transforms.legality.neutral.uniform import Uniform, enter, entered
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_DEEPEST = 8


class Places:
    """Follows a value that is None, or a mask of one element everywhere, to all that is done with it."""

    def __init__(self, facts: FunctionFacts, seen: frozenset[ast.AST] = frozenset()) -> None:
        self.facts = facts
        self.differences: list[Difference] = []
        self._bound: dict[Binding, Element] = {}
        self._seen = seen | {facts.function}
        self._judged: list[ast.AST] = []
        """Tests for None, with all that they guard."""

    @answers("domain")
    def follow(self, node: ast.expr, element: Element) -> None:
        """What takes the value of an expression."""
        above = self.facts.parent(node)
        match above:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is node:
                self.named(name, above, element)
            case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is node:
                self.named(name, above, element)
            case ast.keyword(arg=str(name)):
                call = self.facts.parent(above)
                assert isinstance(call, ast.Call)
                self._given(call, node, name, element)
            case ast.Call() if node in above.args:
                self._given(above, node, None, element)
            case ast.Return():
                self.returned(element)
            case ast.IfExp() if node is not above.test:
                self.follow(above, element)
            case _:
                around = above if above is not None else node
                raise TellsError(f"`{shortened(around)}` may tell it from a mask")

    @answers("domain")
    def named(self, name: str, by: ast.AST, element: Element) -> None:
        """A name that a statement binds to the value, on some of its paths at least."""
        facts = self.facts
        self._bound[Binding(name, by)] = element
        if name not in locals_of(facts.function):
            raise TellsError(f"`{name}` is bound for other functions too")
        inside = set() if by is facts.function else {*nodes_in(by)}
        for node in _in_order(facts.function):
            if not (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)):
                continue
            bound = binding(facts, node)
            if isinstance(bound.by, SCOPES) and bound.by is not facts.function:
                if isinstance(bound.by, _FUNCTIONS) or not any(_binds(n, name) for n in nodes_in(bound.by)):
                    raise TellsError(f"an inner function, or a comprehension, reads `{name}`")
            elif bound not in self._bound and (bound.looped or node not in inside) and self._reaches(by, bound):
                self._bound[bound] = element
            if bound in self._bound and node not in inside:
                self._read(node, self._bound[bound])

    def _reaches(self, by: ast.AST, bound: Binding) -> bool:
        """Does what `by` binds reach a read by a binding around it? Raises where it does on some paths only."""
        facts = self.facts
        if bound.by is facts.function:
            return False
        around = any(n is by for n in nodes_in(bound.by))
        always = not bound.looped and not hasattr(bound.by, "body")
        if around and not bound.looped and sum(_binds(n, bound.name) for n in nodes_in(bound.by)) == 1:
            return True
        in_loop = any(isinstance(a, (ast.For, ast.AsyncFor, ast.While)) for a in facts.ancestors(by))
        if around or not (always or (_ends_before(bound.by, by) and not in_loop)):
            raise TellsError(f"`{bound.name}` is bound in several places")
        return False

    def _read(self, node: ast.Name, element: Element) -> None:
        """One read of a name."""
        facts = self.facts
        above = facts.parent(node)
        if isinstance(above, ast.Compare) and _asks_none(above, node) is not None:
            self._asked(above, node, element)
        elif not self._under_question(node):
            self.follow(node, element)

    def _under_question(self, node: ast.Name) -> bool:
        """Is a read part of what a test for None guards, and judged with it?"""
        child: ast.AST = node
        for above in self.facts.ancestors(node):
            if above in self._judged:
                return True
            if isinstance(above, (ast.If, ast.IfExp)) and child is not above.test and _question(above.test, node.id):
                there = next(n for n in nodes_in(above.test) if isinstance(n, ast.Name) and n.id == node.id)
                return binding(self.facts, there) == binding(self.facts, node)
            child = above
        return False

    # tests for None

    def _asked(self, question: ast.Compare, node: ast.Name, element: Element) -> None:
        """`mask is None`: both sides have to do the same under a mask that masks nothing."""
        above, absent = self.facts.parent(question), _asks_none(question, node)
        if above is not None:
            self._judged.append(above)
        match above:
            case ast.If(test=test, body=body, orelse=orelse) if test is question:
                none, other = (body, orelse) if absent else (orelse, body)
                self._statements(above, none, other, node, element)
            case ast.IfExp(test=test, body=one, orelse=two) if test is question:
                none_value, value = (one, two) if absent else (two, one)
                inside = self._inside(node, element)
                if constant(none_value) is None and isinstance(none_value, ast.Constant):
                    self._onward(above, inside, value)
                elif not self._same(inside, none_value, value):
                    raise TellsError(f"`{shortened(above)}` is not the same under a mask that masks nothing")
            case _:
                raise TellsError(f"`{shortened(above or question)}` asks whether there is a mask")

    def _onward(self, node: ast.IfExp, inside: Uniform, value: ast.expr) -> None:
        element = self._mask(inside, value)
        self.differences += inside.taken
        self.follow(node, element)

    def _mask(self, inside: Uniform, value: ast.expr) -> Element:
        """What all elements of a mask are that is computed of the value, from now on always."""
        element = inside.mask(value)
        if element is None:
            raise TellsError(f"`{shortened(value)}` is not known to mask nothing")
        if found := effects(self.facts, value):
            raise TellsError(found[0])
        return element

    def _inside(self, node: ast.Name, element: Element) -> Uniform:
        return Uniform(self.facts, {**self._bound, binding(self.facts, node): element})

    def _statements(
        self, whole: ast.If, none: list[ast.stmt], other: list[ast.stmt], node: ast.Name, element: Element
    ) -> None:
        inside = self._inside(node, element)
        left = [s for s in other if not self._does_nothing(inside, s, whole, node.id)]
        none = [s for s in none if not isinstance(s, ast.Pass)]
        if len(left) != len(none) or not all(
            self._reduced(inside, s) == self._reduced(inside, n) for s, n in zip(left, none, strict=True)
        ):
            raise TellsError(f"`if {shortened(whole.test)}` does something else under a mask that masks nothing")
        self.differences += inside.taken

    def _does_nothing(self, inside: Uniform, statement: ast.stmt, whole: ast.If, mask: str) -> bool:
        """Is a statement without effect under a mask that masks nothing?"""
        match statement:
            case ast.Pass():
                return True
            case ast.Assign(targets=[ast.Name(id=name) as target], value=value):
                if name == mask:
                    found = self._mask(inside, value)
                    inside.bound[Binding(name, statement)] = found
                    self._bound[Binding(name, statement)] = self._bound[Binding(name, whole)] = found
                    return True
                if (
                    (element := inside.of(value)) is not None
                    and not effects(self.facts, value)
                    and not any(
                        isinstance(n, ast.Name) and n.id == name and n is not target
                        for n in nodes_in(self.facts.function)
                        if not any(n is m for m in nodes_in(whole))
                    )
                ):
                    inside.bound[Binding(name, statement)] = element
                    return True
                kept = self.kept(inside, value)
                return isinstance(kept, ast.Name) and kept.id == name
            case ast.AugAssign(target=ast.Name(), op=op, value=value):
                return _neutral(op, inside.of(value)) and self._writes(statement.target, value)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=into, attr="masked_fill_"), args=[on, value])):
                return inside.truth(on) is False and self._writes(into, value)
            case ast.Assign(targets=[ast.Subscript(value=into, slice=on)], value=value):
                return inside.truth(on) is False and self._writes(into, value)
        return False

    def _writes(self, into: ast.expr, value: ast.expr) -> bool:
        """May what changes no element be written in place? It counts as a change, and what does not fit raises."""
        says = f"`{shortened(into)}`, written to where nothing is masked too, may not fit, or be needed by backward"
        self.differences += [Difference("exception", says), Difference("gradients", says)]
        return not effects(self.facts, into, value)

    def _same(self, inside: Uniform, none: ast.expr, value: ast.expr) -> bool:
        same = self._reduced(inside, value) == self._reduced(inside, none)
        self.differences += inside.taken
        return same

    def _reduced(self, inside: Uniform, node: object) -> object:
        """Code without what does nothing under a mask that masks nothing, as something that compares."""
        if isinstance(node, list):
            return [self._reduced(inside, n) for n in node]
        if not isinstance(node, ast.AST):
            return node
        if isinstance(node, ast.expr):
            node = self.kept(inside, node)
        fields = dict(ast.iter_fields(node))
        if isinstance(node, ast.Call):
            fields["keywords"] = [k for k in node.keywords if not self._gives_none(inside, node, k)]
        return type(node).__name__, [(name, self._reduced(inside, value)) for name, value in fields.items()]

    def _gives_none(self, inside: Uniform, call: ast.Call, keyword: ast.keyword) -> bool:
        """Is a mask given that masks nothing, for which its place takes None by itself?"""
        taking = [one for one in takes(self.facts, call) if one.name == keyword.arg]
        if not taking:
            return False
        if isinstance(keyword.value, ast.Constant) and keyword.value.value is None:
            return True
        element = inside.of(keyword.value)
        if element is None:
            return False
        self.differences += given_for_none(self.facts, call, keyword.value, taking[0], element)
        return True

    def kept(self, inside: Uniform, node: ast.expr) -> ast.expr:
        """What an operation under a mask that masks nothing gives as it was: `s` of `s + 0`, `s.masked_fill(m, v)`."""
        facts, tensor = self.facts, None
        match node:
            case ast.BinOp(left=left, op=op, right=right):
                if _neutral(op, inside.of(right)):
                    tensor = left
                elif isinstance(op, (ast.Add, ast.Mult)) and _neutral(op, inside.of(left)):
                    tensor = right
                if tensor is not None:
                    says = f"`{shortened(node)}` has the dtype that both promote to, and the shape of both"
                    self.differences += [Difference("dtype", says), Difference("shape", says)]
                    says = f"a negative zero in `{shortened(tensor)}` loses its sign under a mask that adds zero"
                    self.differences += [Difference("rounding", says)] if isinstance(op, ast.Add) else []
            case ast.Call(func=ast.Attribute(value=own, attr="masked_fill"), args=[on, _]) if not node.keywords:
                tensor = own if inside.truth(on) is False else None
            case ast.Call(args=[on, one, other]) if qualified(facts, node.func) == "torch.where":
                truth = inside.truth(on)
                tensor = None if truth is None else one if truth else other
            case ast.Call(func=ast.Attribute(value=own, attr="where"), args=[on, _]) if not node.keywords:
                tensor = own if inside.truth(on) is True else None
        besides = [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr) and n is not tensor]
        if tensor is None or effects(facts, *besides):
            return node
        if asks := next((n for n in besides if carries(facts, n)), None):
            says = f"what is computed with `{shortened(asks)}` asks for gradients where that does"
            self.differences += [Difference("gradients", says), Difference("zero-gradients", says)]
        if isinstance(node, ast.Call) and (qualified(facts, node.func) or "").endswith(".where"):
            self.differences.append(Difference("dtype", f"`{shortened(node)}` has the dtype that both promote to"))
        self.differences += _copies(facts, tensor)
        return self.kept(inside, tensor)

    def _given(self, call: ast.Call, node: ast.expr, keyword: str | None, element: Element) -> None:
        value = self.facts.value(call.func)
        for one in takes(self.facts, call):
            if keyword == one.name or (keyword is None and call.args.index(node) == one.place):
                self.differences += given_for_none(self.facts, call, node, one, element)
                return
        if isinstance(value, Instance):
            forward = next((c.methods["forward"] for c in mro(value.info) if "forward" in c.methods), None)
            value = Function(forward, value) if forward is not None else value
        if isinstance(value, Function):
            self._enters(call, node, enter(self.facts, call, value), element)
            return
        if isinstance(method := called_unrecorded(self.facts, call), ast.FunctionDef):
            self._enters(call, node, entered(self.facts, call, method, bound=True), element)
            return
        raise TellsError(f"`{shortened(call)}` may tell it from a mask")

    def _enters(
        self, call: ast.Call, node: ast.expr, inside: tuple[FunctionFacts, dict[str, ast.expr]] | None, element: Element
    ) -> None:
        """A function of the program that is given the value."""
        if inside is None or inside[0].function in self._seen or len(self._seen) > _DEEPEST:
            raise TellsError(f"what `{shortened(call.func)}` does with it is not known")
        facts, given = inside
        inner = Places(facts, self._seen)
        for parameter, value in given.items():
            if value is node:
                inner.named(parameter, facts.function, element)
        self.differences += inner.differences

    def returned(self, element: Element) -> None:
        """What the calls in sight do with a value that the function returns."""
        facts = self.facts
        calls = [c for c in facts.calls() if isinstance(c.node, ast.Call)]
        yields = any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in nodes_in(facts.function))
        if not calls or facts.function.decorator_list or yields:
            raise TellsError(f"what is done with what `{facts.function.name}` gives is not known")
        for caller in calls:
            if caller.function in self._seen:
                raise TellsError(f"`{facts.function.name}` calls itself")
            outer = Places(caller, self._seen)
            assert isinstance(caller.node, ast.Call)
            outer.follow(caller.node, element)
            self.differences += outer.differences
        says = f"`{facts.function.name}` gives a mask where it gave None to callers that are not in sight"
        self.differences.append(Difference("callers", says))


def _in_order(function: ast.AST) -> list[ast.Name]:
    found = [n for n in nodes_in(function) if isinstance(n, ast.Name)]
    return sorted(found, key=lambda n: (n.lineno, n.col_offset))


def _binds(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)


def _ends_before(one: ast.AST, other: ast.AST) -> bool:
    ends = isinstance(one, ast.stmt) and isinstance(other, ast.stmt)
    return ends and (one.end_lineno or one.lineno) < other.lineno and not isinstance(other, ast.FunctionDef)  # type: ignore[attr-defined]


def _asks_none(question: ast.Compare, node: ast.expr) -> bool | None:
    """Does a test hold where there is none (True), or where there is one (False)?"""
    match question:
        case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=None)]) if left is node:
            return True if isinstance(op, ast.Is) else False if isinstance(op, ast.IsNot) else None
    return None


def _question(test: ast.expr, name: str) -> bool:
    match test:
        case ast.Compare(left=ast.Name(id=own), ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return own == name
    return False


def _neutral(op: ast.operator, element: Element | None) -> bool:
    element = number(element)
    if element is None or isinstance(element, str):
        return False
    neutral: dict[type[ast.operator], int] = {ast.Add: 0, ast.Sub: 0, ast.Mult: 1, ast.Div: 1}
    return not isinstance(element, bool) and element == neutral.get(type(op))


def _copies(facts: FunctionFacts, tensor: ast.expr) -> list[Difference]:
    """What differs where a tensor is given out as it was, or as a copy."""
    shape = Difference("shape", f"a mask of more dimensions, or of other sizes, than `{shortened(tensor)}` expands it")
    raises = Difference("exception", "a mask of a shape that does not fit raises where it masks nothing too")
    found = [shape, raises, Difference("strides", f"`{shortened(tensor)}` becomes dense memory under any mask")]
    if not shares(facts, tensor).fresh:
        if changed_in_place(facts, tensor, behind=facts.statement):
            raise TellsError(f"`{shortened(tensor)}` is changed in place, and would be a copy under any mask")
        found.append(Difference("aliasing", f"`{shortened(tensor)}` is a copy under any mask"))
        found += lost(facts, facts.statement, "a copy that any mask makes has no gradient history", tensor)
    return found
