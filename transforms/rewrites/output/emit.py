"""Let the output happen outside the graph, with nothing lost: the call is handed to `graphmend.runtime.emit`.

Before:
    print("loss", loss.item())

After:
    graphmend.runtime.emit(print, "loss", graphmend.runtime.later(loss.item))

Legal when:
    the call's result is not used, and each argument is something that `emit` carries, or a conversion of a
    tensor (`item`, `float`, `str`, `%`, an f-string, arithmetic on such numbers) that `later` can put off. It stands
    in no `try` whose handler would see something else fail, and nothing decides how often the function runs that
    Dynamo does not look at (`lru_cache`).

Differs in:
    nothing: text, values, order and the function called are the same, compiled or not, but for the line that
    `stacklevel` attributes a warning to while compiled. The program needs `graphmend-runtime`.
"""

from __future__ import annotations

import ast
import builtins
import sys
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Container, Scalar, Static, Tensor
from graphmend.analysis.program.entities import Class, Function, Instance, class_of
from graphmend.analysis.resolution.classes import mro
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.compile_site import site_of
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import locals_of
from graphmend.transforms.code.module_level import bound_once, is_made_once
from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.context import cached_around, guarding_try
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.legality.numbers.put_off import NotCarriedError, at_once, deferred, is_warning
from graphmend.transforms.legality.outside.kept_records import NoticedError, check_unnoticed, kept_copies
from graphmend.transforms.legality.outside.listeners import told
from graphmend.transforms.legality.totality import may_raise
from graphmend.transforms.questions import answers
from graphmend.transforms.rewrites.answers import asks, offer, refuse, show

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "emit"
#: findings about output
OUTPUT = ("GM201", "GM202", "GM203", "GM204")
ATTRIBUTED = Difference(
    "output",
    "while compiled, the line that `stacklevel` attributes the warning to, and so whether it is shown, may be another",
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
#: functions whose work is not text for a reader
_NOT_OUTPUT = frozenset("isEnabledFor getEffectiveLevel hasHandlers getChild getLogger".split())
#: functions that decide what is written later
SETTERS = frozenset("setLevel addHandler removeHandler basicConfig simplefilter filterwarnings resetwarnings".split())


@asks("effects", "memory", "order", "context", "names", any_value=True, leaves_names=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    call = output_call(facts)
    if call is None:
        return None
    if is_emitted(facts, call):
        return _with_logger(facts, call)
    if isinstance(call.func, ast.Attribute) and call.func.attr in _NOT_OUTPUT | SETTERS:
        return None
    if reason := misplaced(facts, call):
        return refuse(NAME, reason)
    differences: list[Difference] = []
    if finding.code not in OUTPUT:
        if not outward(facts, call):
            return None
        if unknown := next((a for a in call.args if not _carried(facts, a)), None):
            return refuse(NAME, f"`{ast.unparse(unknown)}` is nothing that can be handed out of the graph")
        try:
            if (record := receiver(facts, call)) is not None:
                check_unnoticed(facts, record, facts.statement)
                differences += kept_copies(facts, *call.args, *(k.value for k in call.keywords))
        except NoticedError as error:
            return refuse(NAME, str(error))
        differences.append(
            Difference(
                "output-order",
                "it happens when the graph runs: code of the region that reads what it changes sees the old state",
            )
        )
    elif kept := next(
        (a for a in call.args if isinstance(facts.value(a), _OBJECTS) and not is_warning(facts, a)), None
    ):
        return refuse(NAME, f"`{ast.unparse(kept)}` is an object, which cannot be handed out of the graph")
    if (isinstance(call.func, ast.Attribute) and call.func.attr == "exception") or any(
        k.arg == "exc_info" for k in call.keywords
    ):
        return refuse(NAME, "the exception that is being handled cannot be handed out of the graph")
    made = next((n for n in nodes_in(call.func) if isinstance(n, ast.Call)), None)
    if made is not None and not is_made_once(facts, made):
        return refuse(NAME, f"`{ast.unparse(made)}` is made in the graph, and may be another one each time")
    try:
        put_off = deferred(call, facts)
    except NotCarriedError as error:
        return refuse(NAME, f"`{error}` breaks the graph before the output happens")
    given = [*call.args, *(k.value for k in call.keywords)]
    if put_off and effects(facts, *(part for node in given for part in at_once(facts, node))):
        return refuse(NAME, "an argument does more than compute, and would do it before the others are computed")

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
        new = f"{emit}({function}{separator}{rest}"
        return [*imports.edits(), *hoisted, replace_expression(facts.source, call, new)]

    if attributed(facts, call):
        if not attributed_inside(finding, facts, call):
            return show(NAME, _TITLE, facts, make, ATTRIBUTED.says)
        differences.append(ATTRIBUTED)
    title = _TITLE if finding.code in OUTPUT else "make the call from inside the graph (graphmend.runtime)"
    return offer(NAME, title, facts, make, differences)


@answers("context")
def misplaced(facts: FunctionFacts, call: ast.Call) -> str | None:
    """Why output at this place can't happen inside a graph; None where it can."""
    if (cached := cached_around(facts)) is not None:
        return f"`{cached}` keeps its results, which Dynamo does not know: each call would write while compiled"
    if guarding_try(facts, facts.statement) is not None:
        return "what fails in a graph does not reach the handler of the `try` around it"
    if (
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "log"
        and any(k.arg == "level" for k in call.keywords)
    ):
        return "a level that is given by name is not told apart from the message"
    if (changed := told(facts)) is not None:
        return f"code that output runs changes `{changed}`, which would be read before that"
    if own := _overriding(facts, call.func):
        return f"`{own}` has methods of its own, which look for the line that called them"
    return None


@answers("context")
def handled(facts: FunctionFacts) -> str | None:
    """What may raise in the `try` around the statement, for a handler that the break let see it.

    A break in a `try` leaves all of it to plain Python. Without the break it is traced, and what a torch operation
    raises while it is traced reaches no handler (torch 2.13).
    """
    guarding = guarding_try(facts, facts.statement)
    return _may_fail(facts, guarding) if guarding is not None else None


def _may_fail(facts: FunctionFacts, guarding: ast.Try) -> str | None:
    """What may raise in the body of a `try`, but for output."""
    for statement in guarding.body:
        for node in nodes_in(statement):
            if isinstance(node, (ast.Raise, ast.Assert, ast.Import, ast.ImportFrom, ast.Delete)):
                return ast.unparse(node).splitlines()[0]
            if isinstance(node, ast.Call) and not _is_output(facts, node) and effects(facts, node):
                return ast.unparse(node)
            if isinstance(node, ast.expr) and not isinstance(node, ast.Constant) and _alone(facts, node):
                found = may_raise(facts, node)
                if found:
                    return ast.unparse(node)
    return None


def _alone(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is an expression the whole of a value or a test, or an argument of output?"""
    above = facts.parent(node)
    return isinstance(above, ast.stmt) and not isinstance(above, ast.Expr)


def _is_output(facts: FunctionFacts, call: ast.Call) -> bool:
    name = qualified(facts, call.func) or ""
    return name in ("builtins.print", "warnings.warn") or name.startswith(("logging.", f"{_RUNTIME}."))


def _overriding(facts: FunctionFacts, function: ast.expr) -> str | None:
    """The object of an adapter's class in reach that words or routes its records itself."""
    if not isinstance(function, ast.Attribute):
        return None
    cls = class_of(facts.value(function.value))
    for base in mro(cls) if cls is not None else ():
        if {"log", "process", "_log", "makeRecord", "findCaller"} & {*base.methods}:
            return ast.unparse(function.value)
    return None


def is_emitted(facts: FunctionFacts, call: ast.Call) -> bool:
    """Is a call one of the runtime's already?"""
    return (qualified(facts, call.func) or "").startswith(f"{_RUNTIME}.")


def _with_logger(facts: FunctionFacts, call: ast.Call) -> Fix | None:
    """Output that is emitted already, by a logger that is looked up in the graph."""
    made = next((n for a in call.args for n in nodes_in(a) if isinstance(n, ast.Call) and is_made_once(facts, n)), None)
    if made is None:
        return None

    def make() -> list[TextEdit]:
        name, hoisted = bound_once(facts, made, "logger")
        return [*hoisted, replace_expression(facts.source, made, name)]

    return offer(NAME, "look the logger up once, at import", facts, make)


#: values that `emit` does not carry: it would break the graph as the call itself does
_OBJECTS = (Instance, ExternalInstance, Class, Function)


@answers("context")
def attributed(facts: FunctionFacts, call: ast.Call) -> bool:
    """Is a warning attributed to a caller by `stacklevel`?"""
    if qualified(facts, call.func) != "warnings.warn":
        return False
    level = next(
        (k.value for k in call.keywords if k.arg == "stacklevel"), call.args[2] if len(call.args) > 2 else None
    )
    return level is not None and constant(level) != 1


@answers("context")
def attributed_inside(finding: Finding, facts: FunctionFacts, call: ast.Call) -> bool:
    """Is the caller that `stacklevel` attributes a warning to traced as well, as far as is in sight? That of the
    compiled function itself is not.
    """
    level = next((k.value for k in call.keywords if k.arg == "stacklevel"), call.args[2:3])
    site, function = site_of(finding, facts), facts.function
    if constant(level[0] if isinstance(level, list) else level) != 2 or function.name in ("forward", "__call__"):
        return False
    if site is None or not any(True for _ in facts.calls()):
        return False
    given = site.node.args if isinstance(site.node, ast.Call) else []
    decorates = any(n is site.node for decorator in function.decorator_list for n in nodes_in(decorator))
    return not decorates and not any(_names(n, function.name) for a in given for n in nodes_in(a))


def _names(node: ast.AST, name: str) -> bool:
    return (isinstance(node, ast.Name) and node.id == name) or (isinstance(node, ast.Attribute) and node.attr == name)


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
    record = receiver(facts, call)
    if record is None:
        return False
    held = (a for a in call.args if isinstance(facts.value(a), Container))
    if name.partition(".")[0] in sys.stdlib_module_names or any(
        not isinstance(a, (ast.Tuple, ast.List, ast.Dict)) for a in held
    ):
        return False  # `heapq.heapify(h)` changes what the region goes on with
    return not name.startswith(("torch.", "numpy.", "random."))


def receiver(facts: FunctionFacts, call: ast.Call) -> ast.Name | None:
    """A writer, a meter or a list that lives outside the function, of which a method is called."""
    match call.func:
        case ast.Attribute(value=ast.Name(id=name) as receiver) if name not in locals_of(facts.function):
            outside = any(name == n.partition(".")[0] for n in _OUTWARD) or name in facts.names
            return None if outside or hasattr(builtins, name) else receiver
    return None


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
