"""Name the device in each call that makes a tensor instead of in a context around them.

Before:
    with torch.device("cpu"):
        return x + torch.ones(4)

After:
    return x + torch.ones(4, device="cpu")

Legal when:
    the context stands alone in its `with` and is `torch.device(...)` of a literal or of a name that is not rebound
    inside, or a device itself (`with x.device:`), and each call inside is one of torch's constructors that obey the
    context, or one that is known not to: arithmetic, reductions and views of tensors, `*_like`, `new_*`. What makes
    tensors on the way (modules, distributions, windows, functions of your own) is refused, and so is what runs when
    the context was left.

Differs in:
    nothing.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Const, Static, Tensor
from graphmend.analysis.program.entities import class_of
from graphmend.analysis.resolution.classes import mro
from graphmend.analysis.syntax.source import Source
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.liveness import fresh, reads, writes
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import called, constant, qualified
from graphmend.transforms.code.text_edits import (
    HOLE,
    apply,
    changed_text,
    replace_expression,
    replace_statements,
    statement_at,
)
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.questions import answers
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "device_context"
#: what a device context changes: `torch.utils._device._device_constructors()` of torch 2.13, but for `torch.range`,
#: which makes its tensor on the CPU all the same, and `nested_tensor`, which obeys `device=` and the context
#: differently
CONSTRUCTORS = frozenset(
    f"torch.{name}"
    for name in """
        empty empty_permuted empty_strided empty_quantized ones zeros full eye arange linspace logspace rand randn
        randint randperm tensor as_tensor asarray scalar_tensor tril_indices triu_indices hann_window hamming_window
        blackman_window bartlett_window kaiser_window sparse_coo_tensor sparse_csr_tensor sparse_csc_tensor
        sparse_bsr_tensor sparse_bsc_tensor sparse_compressed_tensor fft.fftfreq fft.rfftfreq
    """.split()
)
#: functions that look at the tensors that they get, and at no context (measured with torch 2.13)
_GIVEN = (
    known.ELEMENTWISE
    | known.ARITHMETIC
    | known.TESTS
    | known.REDUCTIONS
    | frozenset(
        """
        amax amin max min argmax argmin cumsum cumprod sort topk softmax log_softmax logsumexp matmul mm bmm mv dot
        einsum cat concat stack where masked_fill gather index_select take clamp lerp addcmul addcdiv addmm outer
        rand_like randn_like randint_like range normal from_numpy frombuffer complex polar vander combinations
        block_diag meshgrid cartesian_prod Generator
        reshape flatten squeeze unsqueeze permute transpose movedim t flip roll tile diag diagonal tril triu
        split chunk unbind broadcast_to allclose equal is_tensor numel finfo iinfo no_grad
        """.split()
    )
)
_FUNCTIONAL = known.LOSSES | frozenset(
    """
    linear relu relu6 gelu silu mish elu selu celu leaky_relu softplus sigmoid tanh softmax log_softmax layer_norm
    normalize pad conv1d conv2d
    """.split()
)
_METHODS = (
    _GIVEN
    | known.CASTS
    | frozenset(
        """
        to cpu cuda type_as view view_as expand expand_as repeat repeat_interleave contiguous item tolist numpy size dim
        is_floating_point is_contiguous element_size new_zeros new_ones new_full new_empty new_tensor add_ sub_ mul_
        div_ copy_ fill_ zero_ masked_fill_ clamp_ index_add_ index_copy_ index_fill_ scatter scatter_ scatter_add_
        narrow select unflatten unfold swapaxes detach_ requires_grad_ square_ neg_
        """.split()
    )
)
_BUILTINS = frozenset(
    "len range isinstance tuple list dict zip enumerate min max abs int float bool str print sum round".split()
)
_DEVICE = re.compile(r"(cpu|cuda|meta|mps|xpu|xla|hpu|mtia)(:\d+)?")
#: code that may run when the context was left, or that hands the control over
_ELSEWHERE = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Lambda,
    ast.GeneratorExp,
    ast.Yield,
    ast.YieldFrom,
    ast.Await,
    ast.AsyncWith,
    ast.AsyncFor,
)


class _Obeys(Exception):
    """Why the context may matter to something inside in a way that an argument can't say."""


@asks("context", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = next((n for n in (facts.node, *facts.ancestors(facts.node)) if isinstance(n, ast.With)), None)
    if statement is None or len(statement.items) != 1:
        return None
    context = statement.items[0].context_expr
    if (device := _device(facts, context)) is None:
        return None
    # what is read on the way to the device may be bound anew inside
    owner = device.value if device is context and isinstance(device, ast.Attribute) else device
    path = not isinstance(owner, (ast.Name, ast.Constant)) and device is context
    changes = path or bool(reads(device) & writes(*statement.body))
    if statement.items[0].optional_vars is not None or (changes and device is not context):
        return refuse(NAME, "the device may change inside the context")
    valid = device is context or _is_valid(facts, device)
    if device is not context and not (isinstance(device, ast.Name) or (constant(device) is not None and valid)):
        return refuse(NAME, f"`{ast.unparse(device)}` is no literal and no name")
    try:
        constructors = _constructors(facts, statement)
    except _Obeys as error:
        return refuse(NAME, str(error))
    if not replaceable(facts, [statement]):
        return refuse(NAME, "the statement shares its line with another one")

    def make() -> list[TextEdit]:
        lines, name = "", Code(facts.source).argument(device)
        if changes or not valid:  # an invalid device raises here, as entering the context did
            name = fresh(facts, "device")
            lines = f"{name} = {Code(facts.source).text(context)}\n"
        inside = [_with_device(facts, call, name) for call in constructors]
        after = Source(apply(facts.source.text, inside, facts.source), facts.source.path)
        moved = statement_at(after, statement)
        assert isinstance(moved, ast.With)
        out = replace_statements(after, [moved], f"{lines}{HOLE.format(0)}\n", moved.body)
        return [changed_text(facts.source, statement, apply(after.text, [out], after))]

    return offer(NAME, "name the device in each call", facts, make)


def _device(facts: FunctionFacts, context: ast.expr) -> ast.expr | None:
    """What a context says of the device: what `torch.device` is called with, or what is a device by itself."""
    call = called(facts, context, "torch.device")
    if call is not None:
        return call.args[0] if len(call.args) == 1 and not call.keywords else None
    value = facts.value(context)
    return context if _of_tensor(facts, context) or (isinstance(value, Static) and value.type == "device") else None


def _is_valid(facts: FunctionFacts, device: ast.expr) -> bool:
    """Is a value one that `torch.device` takes for certain?"""
    value = facts.value(device)
    known_text = value.value if isinstance(value, Const) else constant(device)
    if known_text is not None:
        return isinstance(known_text, str) and _DEVICE.fullmatch(known_text) is not None
    return isinstance(value, Static) and value.type == "device"


def _constructors(facts: FunctionFacts, statement: ast.With) -> list[ast.Call]:
    """The calls inside that need the device. Raises `_Obeys` where something else may need it."""
    found: list[ast.Call] = []
    for node in (n for s in statement.body for n in nodes_in(s)):
        if isinstance(node, ast.With) and any(_device(facts, item.context_expr) is not None for item in node.items):
            raise _Obeys("another device holds inside")
        if isinstance(node, _ELSEWHERE):
            raise _Obeys("what runs when the context was left may make tensors, too")
        if own := _own_method(facts, node):
            raise _Obeys(f"`{ast.unparse(own)}` has methods of its own, which may make tensors")
        if isinstance(node, (ast.Name, ast.Attribute)) and not _is_called(facts, node):
            name = qualified(facts, node)
            if name in CONSTRUCTORS or name in ("torch.set_default_device", "torch.get_default_device"):
                raise _Obeys(f"`{ast.unparse(node)}` is handed on, and may be called anywhere")
        if isinstance(node, ast.Call):
            name = qualified(facts, node.func) or ""
            if name in CONSTRUCTORS:
                if _is_open(facts, node):
                    found.append(node)
            elif not _ignores(facts, node, name):
                raise _Obeys(f"`{ast.unparse(node.func)}` may make tensors on the context's device")
    return found


def _own_method(facts: FunctionFacts, node: ast.AST) -> ast.expr | None:
    """The expression whose class decides what an operator, an index, a loop or an attribute does."""
    if isinstance(node, ast.Attribute):
        cls = class_of(facts.value(node.value))
        own = cls is not None and any({node.attr, "__getattr__", "__getattribute__"} & {*c.methods} for c in mro(cls))
        return node.value if own and not _is_called(facts, node) else None
    operands: list[ast.expr] = []
    match node:
        case ast.BinOp(left=left, right=right):
            operands = [left, right]
        case ast.UnaryOp(operand=operand):
            operands = [operand]
        case ast.Compare(left=left, comparators=others):
            operands = [left, *others]
        case ast.Subscript(value=value) | ast.AugAssign(target=value):
            operands = [value]
        case ast.For(iter=value) | ast.comprehension(iter=value) | ast.If(test=value) | ast.While(test=value):
            operands = [value]
    return next((o for o in operands if facts.value(o).dispatches), None)


@answers("context")
def _is_called(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is an expression the function of a call, or a part of its path?"""
    above = facts.parent(node)
    return isinstance(above, ast.Attribute) or (isinstance(above, ast.Call) and above.func is node)


@answers("context")
def _is_open(facts: FunctionFacts, call: ast.Call) -> bool:
    """Does a constructor leave the device to the context?"""
    if any(k.arg is None for k in call.keywords):
        raise _Obeys(f"`{ast.unparse(call)}` may name a device of its own")
    given = next((k.value for k in call.keywords if k.arg == "device"), None)
    if given is None:
        return True
    value = facts.value(given)
    if isinstance(value, Const):
        return value.value is None
    if (isinstance(given, ast.Constant) and given.value is not None) or _is_device(facts, given):
        return False
    raise _Obeys(f"`{ast.unparse(given)}` may be None, which leaves the device to the context")


def _is_device(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is an expression a device for certain?"""
    value = facts.value(node)
    return (
        _of_tensor(facts, node)
        or called(facts, node, "torch.device") is not None
        or (isinstance(value, Static) and value.type in ("device", "str"))
    )


def _of_tensor(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is an expression the device of a tensor?"""
    return isinstance(node, ast.Attribute) and node.attr == "device" and isinstance(facts.value(node.value), Tensor)


@answers("context")
def _ignores(facts: FunctionFacts, call: ast.Call, name: str) -> bool:
    """Is a call one to which a device context means nothing?"""
    folder, _, last = name.rpartition(".")
    if folder == "builtins":
        return last in _BUILTINS and not any(isinstance(a, ast.Starred) for a in call.args)
    if folder == "torch.Tensor":
        return last in _METHODS
    if folder == "torch.nn.functional":
        return last in _FUNCTIONAL
    return (folder == "torch" and last in _GIVEN) or folder == "math" or name == "torch.nn.Parameter"


def _with_device(facts: FunctionFacts, call: ast.Call, device: str) -> TextEdit:
    given = next((k.value for k in call.keywords if k.arg == "device"), None)
    if given is not None:
        return replace_expression(facts.source, given, device)
    text = Code(facts.source).text(call)
    separator = ", " if call.args or call.keywords else ""
    return replace_expression(facts.source, call, f"{text[:-1].rstrip().rstrip(',')}{separator}device={device})")
