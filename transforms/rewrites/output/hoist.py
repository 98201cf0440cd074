"""Make a value once, when the module is imported, instead of in each call, or write it out.

Before:
    def f(x):
        sizes = json.loads('{"scale": 2.5}')
        return (x + importlib.import_module("math").pi) * sizes["scale"]

After:
    pi = importlib.import_module("math").pi


    def f(x):
        sizes = {"scale": 2.5}
        return (x + pi) * sizes["scale"]

Legal when:
    the expression, or the class, reads no local name and no global that may change, and is not about time, chance,
    threads or output. Its value cannot be changed, or is one object in every call: a number, a text, a tuple, a module,
    a pattern, a logger. A list or a dictionary that may be changed is written out, where constants alone decide it.

Differs in:
    it is made once, at import: a later change of what it depends on outside the program is not seen, and an exception
    comes at import.
"""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Container, Static
from graphmend.analysis.syntax.span import Span
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.liveness import fresh, locals_of, reads, writes
from graphmend.transforms.code.module_level import changing_global, insert_above, local_name_in, top_statement
from graphmend.transforms.code.positions import begins_line, first_position, replaceable
from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.questions import answers
from graphmend.transforms.rewrites.answers import asks, offer, refuse
from graphmend.transforms.rewrites.output.forms.folded import NotFolded, folded, literal

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "hoist"
#: modules whose functions give the same for the same arguments in one process
_CONSTANT = frozenset(
    [
        "ast",
        "importlib",
        "functools",
        "platform",
        "inspect",
        "dataclasses",
        "typing",
        "hashlib",
        "zlib",
        "decimal",
        "fractions",
        "re",
        "json",
        "struct",
        "math",
        "operator",
        "string",
        "textwrap",
        "types",
        "base64",
        "binascii",
        "sysconfig",
        "bisect",
        "heapq",
        "collections",
        "itertools",
        "statistics",
        "calendar",
        "colorsys",
        "unicodedata",
    ]
)
_ALONE = frozenset(
    """
    logging.getLogger os.cpu_count os.path.exists os.path.isfile os.path.isdir os.path.join os.getpid
    builtins.__import__ datetime.timedelta datetime.timedelta.total_seconds
    """.split()
)
_BUILTINS = frozenset(
    [
        "sorted",
        "len",
        "min",
        "max",
        "sum",
        "abs",
        "tuple",
        "list",
        "int",
        "float",
        "str",
        "round",
        "range",
        "isinstance",
        "getattr",
        "hasattr",
    ]
)
#: functions of those modules whose results nobody can change
_IMMUTABLE = frozenset(
    """
    importlib.import_module functools.partial functools.cmp_to_key inspect.signature inspect.getsource inspect.getfile
    inspect.isfunction inspect.isclass dataclasses.fields dataclasses.is_dataclass dataclasses.astuple hashlib.new
    zlib.crc32 zlib.adler32 zlib.compress decimal.Decimal fractions.Fraction re.compile re.escape re.sub json.dumps
    struct.pack struct.unpack struct.calcsize textwrap.dedent textwrap.indent textwrap.fill types.MappingProxyType
    base64.b64encode base64.b64decode binascii.hexlify binascii.unhexlify binascii.crc32 sysconfig.get_config_var
    bisect.bisect bisect.bisect_left bisect.bisect_right collections.namedtuple operator.itemgetter operator.attrgetter
    operator.methodcaller logging.getLogger os.cpu_count os.path.exists os.path.isfile os.path.isdir os.path.join
    os.getpid builtins.__import__ dataclasses.make_dataclass datetime.timedelta datetime.timedelta.total_seconds
    """.split()
)
_IMPORTS = ("importlib.import_module", "builtins.__import__")
#: modules whose attributes nobody changes
_UNCHANGING = ("math", "cmath", "operator")
#: which TorchDynamo does not trace either
_LISTS_OF_A_LOGGER = ("handlers", "filters", "manager", "parent", "root")
_NUMBERS = frozenset("len abs int float str round isinstance hasattr".split())
_IMMUTABLE_TYPES = frozenset("bool int float complex str bytes NoneType tuple dtype device".split())
_ONCE = (
    Difference("state", "it is made once, when the module is imported"),
    Difference("exception", "an exception comes when the module is imported"),
)


@asks("memory", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    if isinstance(facts.statement, ast.ClassDef):
        return _class(facts, facts.statement)
    node = facts.node
    if not isinstance(node, ast.Call) or isinstance(facts.parent(node), (ast.Expr, ast.withitem)):
        return None
    name = qualified(facts, node.func)
    if name is None or not _constant(facts, node):
        return None
    around = facts.parent(node)
    if name == "logging.getLogger" and isinstance(around, ast.Attribute) and around.attr in _LISTS_OF_A_LOGGER:
        return refuse(NAME, f"`{ast.unparse(around)}` may be another when the function runs")
    if any(isinstance(n, ast.NamedExpr) for n in nodes_in(node)):
        return refuse(NAME, f"`{ast.unparse(node)}` binds a name as well")
    if name in _IMPORTS and not _is_there(facts, node):
        return refuse(NAME, f"`{ast.unparse(node)}` may not be there when the file is imported")
    if (replaced := _written_out(facts, node)) is not None:
        return offer(NAME, "write the value out", facts, lambda: [replaced], [])
    if free := local_name_in(facts, node):
        return refuse(NAME, f"`{ast.unparse(node)}` reads `{free}`, which each call has its own of")
    top = top_statement(facts)
    if top is None or not begins_line(facts.source, top):
        return refuse(NAME, "there is no module-level line to move it to")
    largest = _largest(facts, node)
    if changing := changing_global(facts, top, largest):
        return refuse(NAME, f"`{changing}` may be another when the function runs")
    if not _immutable(facts, largest):
        return refuse(NAME, f"`{ast.unparse(largest)}` may be changed, and would be shared by all calls")
    wanted = largest.attr if isinstance(largest, ast.Attribute) else name.rpartition(".")[2]
    match facts.statement:
        case ast.Assign(targets=[ast.Name(id=own)], value=value) if value is largest:
            wanted = own
    bound = fresh(facts, f"_{wanted.strip('_')}")

    def make() -> list[TextEdit]:
        text = Code(facts.source).line(largest)
        return [insert_above(facts, top, f"{bound} = {text}"), replace_expression(facts.source, largest, bound)]

    return offer(NAME, "make the value once, at import", facts, make, _ONCE)


def _written_out(facts: FunctionFacts, node: ast.Call) -> TextEdit | None:
    """The display in the place of a value that may be changed, and that the code alone decides."""
    for whole in (_largest(facts, node), node):
        try:
            text = None if _immutable(facts, whole) else literal(folded(facts, whole))
        except NotFolded:
            continue
        if text is not None:
            return replace_expression(facts.source, whole, text)
    return None


def _class(facts: FunctionFacts, node: ast.ClassDef) -> Fix | Refusal:
    free = sorted((reads(node) & locals_of(facts.function)) - {node.name})
    if free:
        return refuse(NAME, f"the class reads `{free[0]}`, which each call has its own of")
    if any(node.name in writes(n) for n in nodes_in(facts.function) if n is not node):
        return refuse(NAME, f"`{node.name}` is bound to something else in the function, too")
    top = top_statement(facts)
    tree = facts.source.tree
    assert tree is not None
    if node.name in facts.names or any(
        isinstance(n, ast.Name) and n.id == node.name for s in tree.body if s is not top for n in nodes_in(s)
    ):
        return refuse(NAME, f"the module has a `{node.name}` of its own")
    if top is not None and (changing := changing_global(facts, top, node)):
        return refuse(NAME, f"`{changing}` may be another when the function runs")
    if _is_written(facts, node):
        return refuse(NAME, "the class is changed, and would be shared by all calls")
    block = facts.body_of(node)
    if top is None or not begins_line(facts.source, top) or len(block) == 1 or not replaceable(facts, [node]):
        return refuse(NAME, "the class cannot be moved out of its block")

    def make() -> list[TextEdit]:
        from graphmend.transforms.code.statement_splice import Place

        place = Place(facts.source, top, top)
        text = place.generate(place.parse([node]))
        line = first_position(facts.source, node)[0]
        end = node.end_lineno or node.lineno
        return [insert_above(facts, top, text), TextEdit(Span(line, 0, end + 1, 0), "")]

    shared = Difference("aliasing", "every call has the same class")
    return offer(NAME, "make the class once, at import", facts, make, [*_ONCE, shared])


@answers("memory")
def _is_written(facts: FunctionFacts, node: ast.ClassDef) -> bool:
    """May the class, or what it holds, be changed?"""
    mutable = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.Call)
    if any(isinstance(s, ast.Assign | ast.AnnAssign) and isinstance(s.value, mutable) for s in node.body):
        return True
    own = {*nodes_in(node)}
    for inner in nodes_in(facts.function):
        match inner:
            case ast.Attribute(value=ast.Name(id=owner), ctx=ast.Store() | ast.Del()) if owner in (node.name, "cls"):
                return True
            case ast.Attribute(value=ast.Call() | ast.Attribute(), ctx=ast.Store() | ast.Del()) if inner in own:
                return True  # `type(self).made = 1`
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id in ("setattr", "delattr"):
            return True
    return False


def _immutable(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is a value one that nobody can change, or is only a part of it used that is?"""
    value = facts.value(node)
    if isinstance(value, Static) and value.type in _IMMUTABLE_TYPES:
        return True
    if isinstance(value, Container) and value.kind == "tuple" and value.items is not None:
        return all(isinstance(item, Static) and item.type in _IMMUTABLE_TYPES for item in value.items)
    match node:
        case ast.Call(func=function):
            name = qualified(facts, function) or ""
            folder, _, last = name.rpartition(".")
            if folder in ("math", "platform", "operator", "statistics", "unicodedata") or name in _IMMUTABLE:
                return True
            if folder != "builtins":
                return False
            return last in _NUMBERS or (last in ("min", "max", "pow") and all(_immutable(facts, a) for a in node.args))
        case ast.Attribute(value=inner):
            return _immutable(facts, inner) and isinstance(inner, (ast.Call, ast.Attribute, ast.Name))
        case ast.BinOp(left=left, right=right):
            return _immutable(facts, left) and _immutable(facts, right)
        case ast.UnaryOp(operand=operand):
            return _immutable(facts, operand)
        case ast.Compare() | ast.Constant() | ast.JoinedStr():
            return True
    return False


def _largest(facts: FunctionFacts, node: ast.expr) -> ast.expr:
    """The largest expression around `node` that reads no local name either."""
    largest = node
    child: ast.AST = node
    if _is_changeable(facts, node):
        return node
    for around in facts.ancestors(node):
        if isinstance(around, ast.expr):
            if (
                local_name_in(facts, around)
                or not _constant(facts, around)
                or isinstance(around, (ast.Lambda, ast.GeneratorExp, ast.ListComp))
            ):
                break
            if not (
                isinstance(around, ast.Attribute)
                and child is around.value
                and isinstance(facts.parent(around), ast.Call)
            ):
                largest = around
        elif not isinstance(around, ast.keyword):
            break
        child = around
    return largest


def _is_changeable(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is a value always the same object, whose attributes are others from time to time: a logger, a module?"""
    name = (qualified(facts, node.func) or "") if isinstance(node, ast.Call) else ""
    if name in _IMPORTS and isinstance(node, ast.Call) and node.args:
        return constant(node.args[0]) not in _UNCHANGING
    return name == "logging.getLogger" or name.startswith(
        "decimal."
    )  # what is computed of decimals depends on a context


def _is_there(facts: FunctionFacts, node: ast.Call) -> bool:
    """Is a module that is imported one of Python's, or of a package that the file imports anyway?"""
    package = str(constant(node.args[0])).partition(".")[0] if node.args else ""
    return package in sys.stdlib_module_names or package in {n.partition(".")[0] for n in facts.names.values()}


def _constant(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is every call in an expression one that gives the same each time?"""
    for call in nodes_in(node):
        if isinstance(call, ast.Call):
            name = qualified(facts, call.func) or ""
            root, _, last = name.partition(".")
            if name in _ALONE or (root == "builtins" and last in _BUILTINS):
                continue
            if root not in _CONSTANT or name in ("inspect.stack", "inspect.currentframe"):
                return False
    return True
