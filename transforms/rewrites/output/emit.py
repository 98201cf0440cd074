"""Let the output happen outside the graph, with nothing lost: the call is handed to `graphmend.runtime.emit`.

Before:
    print("loss", loss.item())

After:
    graphmend.runtime.emit(print, "loss", graphmend.runtime.later(loss.item))

Legal when:
    the call's result is not used, and each argument is something that `emit` carries, or a conversion of a
    tensor (`item`, `float`, `str`, `%`, an f-string) that `later` can put off.

Differs in:
    nothing: text, values, order and the function called are the same, compiled or not. The program needs
    `graphmend-runtime`.
"""

from __future__ import annotations

import ast
import builtins
import sys
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Container, Scalar, Static, Tensor
from graphmend.analysis.program.entities import Class, Function, Instance
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.fstrings import quoted, template
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import locals_of
from graphmend.transforms.code.module_level import bound_once, is_made_once
from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.rewrites.answers import offer, refuse, show

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "emit"
#: findings about output
OUTPUT = ("GM201", "GM202", "GM203", "GM204")
ATTRIBUTED = (
    "whom `stacklevel` attributes the warning to, and so whether it is shown, depends on frames outside the graph"
)
_TITLE = "emit the output from inside the graph (graphmend.runtime), nothing lost"
_OUTWARD = [
    "gc",
    "time.sleep",
    "os.environ",
    "os.makedirs",
    "os.mkdir",
    "os.remove",
    "os.unlink",
    "os.rename",
    "os.system",
    "os.putenv",
    "subprocess.run",
    "subprocess.call",
    "subprocess.check_call",
    "shutil",
    "pickle.dump",
    "json.dump",
    "torch.save",
    "numpy.save",
    "numpy.savez",
    "numpy.savetxt",
    "tracemalloc",
    "faulthandler",
    "sys.stdout",
    "sys.stderr",
    "pprint",
    "traceback.print_exc",
    "traceback.print_stack",
    "csv",
]
_RUNTIME = "graphmend.runtime"
#: conversions that are a plain call of one function
_CONVERSIONS = {f"builtins.{n}" for n in ("int", "float", "bool", "str", "repr", "complex", "round", "hash")}
#: functions whose work is not text for a reader
_NOT_OUTPUT = frozenset(
    [
        "isEnabledFor",
        "getEffectiveLevel",
        "hasHandlers",
        "setLevel",
        "addHandler",
        "removeHandler",
        "getChild",
        "getLogger",
        "basicConfig",
        "simplefilter",
        "filterwarnings",
        "resetwarnings",
    ]
)


def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    call = output_call(facts)
    if call is None:
        return None
    if isinstance(call.func, ast.Attribute) and call.func.attr in _NOT_OUTPUT:
        return None
    differences: list[Difference] = []
    if finding.code not in OUTPUT:
        if not outward(facts, call):
            return None
        if unknown := next((a for a in call.args if not _carried(facts, a)), None):
            return refuse(NAME, f"`{ast.unparse(unknown)}` is nothing that can be handed out of the graph")
        differences.append(
            Difference(
                "output-order",
                "it happens when the graph runs: code of the region that reads what it changes sees the old state",
            )
        )
    elif kept := next((a for a in call.args if isinstance(facts.value(a), _OBJECTS)), None):
        return refuse(NAME, f"`{ast.unparse(kept)}` is an object, which cannot be handed out of the graph")
    if (isinstance(call.func, ast.Attribute) and call.func.attr == "exception") or any(
        k.arg == "exc_info" for k in call.keywords
    ):
        return refuse(NAME, "the exception that is being handled cannot be handed out of the graph")
    made = next((n for n in ast.walk(call.func) if isinstance(n, ast.Call)), None)
    if made is not None and not is_made_once(facts, made):
        return refuse(NAME, f"`{ast.unparse(made)}` is made in the graph, and may be another one each time")
    try:
        deferred(call, facts)
    except NotCarriedError as error:
        return refuse(NAME, f"`{error}` breaks the graph before the output happens")

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        code = Code(facts.source)
        emit = imports.name(f"{_RUNTIME}.emit", _RUNTIME)
        text = code.text(call, deferred(call, facts, imports))
        rest = text[_arguments(facts, call) :]
        separator = ", " if call.args or call.keywords else ""
        if rest[:1] in "\r\n":  # the arguments begin on a line of their own: so does the function now
            separator = ","
        function = code.text(call.func)
        hoisted: list[TextEdit] = []
        if made is not None:
            name, hoisted = bound_once(facts, made, "logger")
            function = code.text(call.func, {made: name})
        return [
            *imports.edits(),
            *hoisted,
            replace_expression(facts.source, call, f"{emit}({function}{separator}{rest}"),
        ]

    if attributed(facts, call):
        return show(NAME, _TITLE, facts, make, ATTRIBUTED)
    title = _TITLE if finding.code in OUTPUT else "make the call from inside the graph (graphmend.runtime)"
    return offer(NAME, title, facts, make, differences)


#: values that `emit` does not carry: it would break the graph as the call itself does
_OBJECTS = (Instance, ExternalInstance, Class, Function)


def attributed(facts: FunctionFacts, call: ast.Call) -> bool:
    """Is a warning attributed to a caller by `stacklevel`?"""
    if qualified(facts, call.func) != "warnings.warn":
        return False
    level = next(
        (k.value for k in call.keywords if k.arg == "stacklevel"), call.args[2] if len(call.args) > 2 else None
    )
    return level is not None and constant(level) != 1


def _carried(facts: FunctionFacts, node: ast.expr) -> bool:
    """Does `emit` carry the value of an argument: a tensor, a number, a text, or a container of these?"""
    value = facts.value(node)
    if isinstance(value, Container):
        return True
    return isinstance(value, (Scalar, Static)) or (isinstance(value, Tensor) and not value.ndarray)


def outward(facts: FunctionFacts, call: ast.Call) -> bool:
    """Is a call, whose result is not used, one that only changes the world outside the program, or a record
    that it keeps?
    """
    name = qualified(facts, call.func) or ""
    if any(name == n or name.startswith(f"{n}.") for n in _OUTWARD):
        return True
    if not isinstance(call.func, ast.Attribute) or not isinstance(call.func.value, ast.Name):
        return False
    if name.partition(".")[0] in sys.stdlib_module_names or any(
        isinstance(facts.value(a), Container) for a in call.args
    ):
        return False  # `heapq.heapify(h)` changes what the region goes on with
    receiver = call.func.value.id  # a writer or a meter that lives outside the function
    return (
        receiver not in locals_of(facts.function)
        and not hasattr(builtins, receiver)
        and not name.startswith(("torch.", "numpy.", "random."))
    )


def output_call(facts: FunctionFacts) -> ast.Call | None:
    """The call that is the whole statement of the finding."""
    statement = facts.statement
    return statement.value if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) else None


def _arguments(facts: FunctionFacts, call: ast.Call) -> int:
    """How far behind its beginning a call's arguments begin."""
    lines, span, func = facts.source.lines, facts.source.span(call), facts.source.span(call.func)
    text = facts.source.text
    at = lines.offset(func.end_line - 1, func.end_column)
    at = text.index("(", at) + 1
    return at - lines.offset(span.line - 1, span.column)


class NotCarriedError(Exception):
    """An argument that neither `emit` nor `later` carries."""


def deferred(call: ast.Call, facts: FunctionFacts, imports: Imports | None = None) -> dict[ast.expr, str]:
    """The arguments that `later` must make, with their new text."""
    replace: dict[ast.expr, str] = {}
    for argument in [*call.args, *(k.value for k in call.keywords)]:
        if text := _Later(facts, imports).defer(argument):
            replace[argument] = text
    return replace


class _Later:
    """Puts off the parts of an argument that break the graph."""

    def __init__(self, facts: FunctionFacts, imports: Imports | None) -> None:
        self.facts = facts
        self.code = Code(facts.source)
        self.later = imports.name(f"{_RUNTIME}.later", _RUNTIME) if imports is not None else "later"

    def defer(self, node: ast.expr) -> str | None:
        """New text for an expression; None where it can stay as it is."""
        if not self._breaks(node):
            return None
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr="item" | "tolist" | "numpy"), args=[]):
                if self._breaks(value):
                    raise NotCarriedError(self.code.text(value))
                return f"{self.later}({self.code.text(node.func)})"
            case ast.Call(args=[*args], keywords=[]) if qualified(self.facts, node.func) in _CONVERSIONS:
                return self._call(self.code.text(node.func), args)
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="format"), args=args, keywords=[]):
                return self._call(self.code.text(node.func), args)
            case ast.JoinedStr():
                text, values = template(node)
                return self._call(f"{quoted(text)}.format", values)
            case ast.BinOp(left=left, op=ast.Mod(), right=ast.Tuple(elts=elements)) if _is_text(left):
                inside = ", ".join(self._argument(e) for e in elements)
                return f"{self.later}({self.code.operand(left)}.__mod__, ({inside}{',' if len(elements) == 1 else ''}))"
            case ast.BinOp(left=left, op=ast.Mod(), right=right) if _is_text(left):
                return self._call(f"{self.code.operand(left)}.__mod__", [right])
            case ast.BinOp(left=left, op=ast.Add(), right=right) if _is_text(left):
                return self._call(f"{self.code.operand(left)}.__add__", [right])
            case ast.List() | ast.Tuple():
                return self.code.text(node, {e: self._argument(e) for e in node.elts})
        raise NotCarriedError(" ".join(self.code.text(node).split()))

    def _call(self, function: str, arguments: list[ast.expr]) -> str:
        return f"{self.later}({', '.join([function, *map(self._argument, arguments)])})"

    def _argument(self, node: ast.expr) -> str:
        return self.defer(node) or self.code.argument(node)

    def _breaks(self, node: ast.expr) -> bool:
        """Does evaluating an expression take a Python value out of a tensor?"""
        return any(self._converts(n) for n in ast.walk(node))

    def _converts(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in ("item", "tolist", "numpy"):
                return isinstance(self.facts.value(node.func.value), Tensor)
            if qualified(self.facts, node.func) in _CONVERSIONS:
                return any(isinstance(self.facts.value(a), (Tensor, Scalar)) for a in node.args)
            return isinstance(self.facts.value(node), Scalar)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and _is_text(node.left):
            return any(
                isinstance(self.facts.value(n), (Tensor, Scalar))
                for n in ast.walk(node.right)
                if isinstance(n, ast.expr)
            )
        if isinstance(node, ast.FormattedValue) and node.conversion != -1:
            return isinstance(self.facts.value(node.value), Tensor)
        return False


def _is_text(node: ast.expr) -> bool:
    """Is an expression a string for certain?"""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mod)):
        return _is_text(node.left)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
