"""Dictionaries and attributes that hold 0-d tensors instead of Python numbers: who reads them there."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Hashable, Iterator

from graphmend.analysis.lattice.values import Container, Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bindings, display_of
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.liveness import parameters
from graphmend.transforms.code.qualified_names import called, constant, number_type
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.numbers.arithmetic import NeedsPythonNumberError
from graphmend.transforms.legality.numbers.as_tensors import PRECISION
from graphmend.transforms.legality.numbers.containers.lists import Lists, is_list, is_statement
from graphmend.transforms.legality.numbers.counterparts import Counterpart, Result
from graphmend.transforms.legality.rows.counts import asks_length
from graphmend.transforms.legality.speculation import repeatable

#: a table of more numbers is not written out
_MANY = 32
_DICTIONARIES = ("builtins.dict", "collections.OrderedDict", "collections.defaultdict")


class Dictionaries(Lists):
    """Follows what is kept under a key or in an attribute, to its readers in the function. What outlives the call is
    a difference: whoever reads it later finds a tensor.
    """

    hands_over: bool
    """Does a place that outlives the call get the number?"""
    _mixed: bool
    """May what is followed be a Python number as well?"""
    _anew: frozenset[ast.AST] = frozenset()
    """What whoever asks writes as a new value."""

    def is_followed(self, place: str) -> bool:
        """Does a place hold the number, as far as was asked?"""
        return any(text == place for text, _ in self._lists)

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
                self._carry_in_dictionary(node, display, dtype)

    @abstractmethod
    def _carry_in_dictionary(self, node: ast.expr, whole: ast.Dict, dtype: Hashable) -> None:
        """A dictionary that is handed on with the number in it."""

    @abstractmethod
    def _carry_under(self, node: ast.expr, key: ast.expr, dtype: Hashable) -> None:
        """A name of a dictionary, which is handed on with the number in it."""

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
        for node in nodes_in(self.facts.function):
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
                self._carry_under(node, key, dtype)

    # Tables that are asked for a number

    def _entry_of(self, asked: ast.expr, number: ast.expr, dtype: Hashable) -> Result | None:
        """`table[s]`, `table.get(s, 0)`, `s in table`, of a table whose numbers are written out: comparisons with each.
        None where the table is not known so.
        """
        match asked:
            case ast.Compare(comparators=[of]):
                keys = self._numbers(of)
            case ast.Subscript(value=of, ctx=ast.Load()) | ast.Call(func=ast.Attribute(value=of), keywords=[]):
                keys = self._numbers(of) if isinstance(display_of(self.facts, of), ast.Dict) else None
            case _:
                return None
        if not keys or len(keys) > _MANY or not repeatable(self.facts, number):
            return None
        for key in keys:
            self._compared(key, dtype, number)
        if not isinstance(asked, ast.Compare):
            return self._chosen(asked, number, keys, display_of(self.facts, of))
        if self._mixed:
            raise NeedsPythonNumberError(f"`{shortened(asked)}` asks for what may be a Python number as well")
        sign, joint = (" == ", " | ") if isinstance(asked.ops[0], ast.In) else (" != ", " & ")
        tests = joint.join(f"({{number}}{sign}{ast.unparse(key)})" for key in keys)
        return Result("bool", (), Counterpart(asked, formula=tests, parts=(("number", number),)))

    def _numbers(self, table: ast.expr) -> list[ast.expr] | None:
        """The numbers that are asked whether they are equal, of a display or of what a name always stands for."""
        display = display_of(self.facts, table)
        if display is None:
            return None
        numbers = display.keys if isinstance(display, ast.Dict) else display.elts
        known = [n for n in numbers if n is not None and isinstance(constant(n), (int, float))]
        return known if len(known) == len(numbers) else None

    def _chosen(
        self,
        asked: ast.expr,
        number: ast.expr,
        keys: list[ast.expr],
        display: ast.Dict | ast.List | ast.Tuple | ast.Set | None,
    ) -> Result | None:
        """The value under the key that is equal, of whole numbers or of others alone."""
        assert isinstance(display, ast.Dict)
        entries = {constant(key): value for key, value in zip(keys, display.values, strict=True)}
        if any(constant(value) is None for value in entries.values()):
            return None  # what is computed where the table is made may be another value here
        otherwise = asked.args[1] if isinstance(asked, ast.Call) and len(asked.args) == 2 else None
        if isinstance(asked, ast.Call) and otherwise is None:
            return None
        types = {number_type(self.facts, value) for value in (*entries.values(), *([otherwise] if otherwise else []))}
        if types not in ({"int"}, {"float"}) or not repeatable(self.facts, *([otherwise] if otherwise else [])):
            return None
        found = [] if "int" in types else [PRECISION]
        if otherwise is None:
            found.append(Difference("exception", f"`{shortened(asked)}` gives an entry where none is found"))
        pairs = list(entries.items())
        text = "{otherwise}" if otherwise else ast.unparse(pairs.pop()[1])
        for key, value in reversed(pairs):
            text = f"torch.where({{number}} == {key!r}, {ast.unparse(value)}, {text})"
        parts = [("number", number), *([("otherwise", otherwise)] if otherwise else [])]
        form = Counterpart(asked, formula=text, parts=tuple(parts))
        return Result("int64" if "int" in types else "float32", tuple(found), form)

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
        self.hands_over = True
        self.differences.append(Difference("type", f"`{shortened(of)}` holds 0-d tensors instead of Python numbers"))
        for node in self._reads(of):
            if not isinstance(self.facts.parent(node), ast.Attribute):
                self._listed(node, dtype)
        self._grown_elsewhere(of, dtype)

    @abstractmethod
    def _grown_elsewhere(self, of: ast.Attribute, dtype: Hashable) -> None:
        """What other functions in sight do with a list in an attribute that holds tensors now."""

    def _is_kept(self, entry: ast.expr) -> bool:
        """Is a tuple, or a dictionary, only appended to a list in an attribute, which the function does not read?"""
        match call := self.facts.parent(entry):
            case ast.Call(func=ast.Attribute(value=ast.Attribute() as of, attr="append"), args=[one]) if one is entry:
                pass
            case _:
                return False
        reads = [n for n in self._reads(of) if n is not of]
        if not self.rewrites or not is_statement(self.facts, call) or not is_list(self.facts, of) or reads:
            return False
        self.differences += [
            Difference("type", f"`{shortened(of)}` holds 0-d tensors instead of Python numbers"),
            Difference("state", f"code elsewhere that asks what `{shortened(of)}` holds may do something else"),
        ]
        return True

    def _outlives(self, target: ast.expr, dtype: Hashable) -> None:
        """A place that others read when the call is over, and the function itself."""
        self.hands_over = True
        place = shortened(target)
        self.differences += [
            Difference("type", f"`{place}` holds a 0-d tensor instead of a Python number"),
            Difference("state", f"code elsewhere that asks what `{place}` is may do something else"),
            Difference("dtype", f"what is computed elsewhere with `{place}` may get its dtype"),
        ]
        if (ast.unparse(target), dtype) in self._lists:
            return
        self._lists.add((ast.unparse(target), dtype))
        for node in nodes_in(self.facts.function):
            if not isinstance(node, ast.AugAssign) or node in self._anew:
                continue
            if ast.unparse(node.target) == ast.unparse(target):
                self._anew_or_refused(node)
        for node in self._reads(target):
            if not isinstance(self.facts.value(node), Tensor):
                self._follow(node, dtype)
        self._read_elsewhere(target, dtype)

    @abstractmethod
    def _anew_or_refused(self, node: ast.AugAssign) -> None:
        """`self.total += value` of what is a tensor now: written as a new value, or refused."""

    @abstractmethod
    def _read_elsewhere(self, target: ast.expr, dtype: Hashable) -> None:
        """What other functions in sight do with a tensor in a place that outlives this one."""

    def _reads(self, target: ast.expr) -> Iterator[ast.expr]:
        """Where the function reads a place, by its text."""
        wanted = ast.unparse(target)
        for node in nodes_in(self.facts.function):
            place = isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Load)
            if place and isinstance(node, ast.expr) and ast.unparse(node) == wanted:
                yield node
