"""Calls in a history of what has no source: torch's functions and modules, numbers, containers."""

from __future__ import annotations

import ast
import math
from typing import TYPE_CHECKING

from graphmend.analysis.driver.execution import calls
from graphmend.analysis.driver.execution.members import descendants, is_module
from graphmend.analysis.driver.execution.objects import (
    NONE,
    UNKNOWN,
    Atom,
    Callable,
    ClassObject,
    Compiled,
    Constant,
    Disabled,
    Method,
    Named,
    Object,
    Partial,
    Scope,
    Values,
    sequence,
)
from graphmend.analysis.driver.frameworks import SEQUENCES
from graphmend.analysis.driver.guards.atoms import Numbers, Tensor, only, tensor
from graphmend.analysis.driver.guards.facts import DECIDES, LASTING, MAKE_CLASSES, MODES
from graphmend.analysis.driver.history import joins, layers, loading, tensors
from graphmend.analysis.driver.history.forms import items_of, sizes
from graphmend.analysis.driver.history.numbers import arithmetic, draws, written
from graphmend.analysis.torch_facts.overloads import Returns

if TYPE_CHECKING:
    from graphmend.analysis.driver.history.interface import Recorder

Arguments = list[Values]
Keywords = dict[str, Values]
_MARKS = {
    "mark_dynamic": "dynamic",
    "maybe_mark_dynamic": "dynamic",
    "mark_static": "static",
}
_NUMBERED = frozenset({"builtins.range", "builtins.enumerate", "builtins.zip", "builtins.len", "builtins.reversed"})
#: what stands for the parameters of a module
PARAMETERS = "torch.nn.Parameter"
#: items of a range that are told apart
_LONGEST = 64


def is_followed(atom: Atom | None) -> bool:
    """Whether the code that is called is executed: what it does with its arguments is seen there."""
    if isinstance(atom, (Callable, ClassObject, Compiled, Partial, Disabled)):
        return True
    if isinstance(atom, Object):
        return atom.info is not None or atom.name in SEQUENCES
    if isinstance(atom, Named):
        return atom.name in _NUMBERED or atom.name in arithmetic.FUNCTIONS
    return isinstance(atom, Method) and isinstance(atom.receiver, Object) and atom.receiver.fields is not None


def external(
    m: Recorder, atom: Atom | None, arguments: Arguments, keywords: Keywords, node: ast.expr, scope: Scope
) -> Values | None:
    """The value of a call; None where the machine for driver code knows as much."""
    if isinstance(atom, Named):
        return _named(m, atom.name, arguments, keywords, node, scope)
    if isinstance(atom, Method):
        return _method(m, atom.receiver, atom.name, arguments, keywords)
    return None


def _named(
    m: Recorder, name: str, arguments: Arguments, keywords: Keywords, node: ast.expr, scope: Scope
) -> Values | None:
    package, _, last = name.rpartition(".")
    if m.trace is None:
        if name in arithmetic.FUNCTIONS:
            arguments = [written.held(v[0], item=True) or v if len(v) == 1 else v for v in arguments]
        elif package == "numpy" and (made_of := written.array(last, arguments, keywords)) is not None:
            return (made_of,)
        if name in draws.GENERATORS:
            return (m.make(None, name),)
        if (number := draws.drawn(m, package, last, arguments, keywords)) is not None:
            return number
    if name in arithmetic.FUNCTIONS and arguments and not keywords:
        return arithmetic.computed(arithmetic.FUNCTIONS[name], arguments)
    if name in MAKE_CLASSES and (arguments or keywords):
        return (m.make(None, name),)
    if name in _NUMBERED and arguments:
        return _counted(m, last, arguments)
    if name in LASTING and arguments and isinstance(only(arguments[0]), bool):
        m.modes[MODES[name][0]] = only(arguments[0]) is True
        return NONE
    if name == loading.DATASET:
        made = m.make(None, name)
        made.items = list(arguments)
        return (made,)
    if name == loading.LOADER:
        return loading.batches(m, arguments, keywords, node, scope)
    if name in loading.SPLITS and arguments:
        return loading.split(arguments[0], name)
    if name in ("torch.nn.Parameter", "torch.nn.parameter.Parameter") and arguments:
        one = tensor(arguments[0])
        return (Tensor(one.shape, one.dtype, True),) if one is not None else UNKNOWN
    if last in _MARKS and name.startswith("torch."):
        _mark(arguments, _MARKS[last])
        return NONE
    if name in ("torch._dynamo.reset", "torch.compiler.reset"):
        m.frames.clear()
        return NONE
    if name.startswith("torch.nn.") and last in layers.SIGNATURES and m.trace is None:
        built = calls.call(m, (Named(name),), arguments, keywords, node, scope)
        layers.configure(built, last, arguments, keywords)
        return built
    if name.startswith("torch.") and not last[:1].isupper() and name not in MODES:
        factory = tensors.factory(last, arguments, keywords) if name.count(".") == 1 else None
        if factory is not None:
            draws.fill(m, last, factory, arguments, keywords)
            return (factory,)
        _decide(m, last, arguments, keywords, 0)
        if any(isinstance(a, Tensor) for values in arguments for a in values) or last in joins.OF_LISTS:
            return tensors.operation(last, arguments, keywords, _result(m, name, arguments, keywords))
    return None


def _result(m: Recorder, name: str, arguments: Arguments, keywords: Keywords) -> Returns | None:
    """What a function of torch gives."""
    of_tensors = (i for i, values in enumerate(arguments) if tensor(values) is not None)
    return m.program.torch.returns(name, len(arguments), frozenset(keywords), dict.fromkeys(of_tensors, True))


def _counted(m: Recorder, name: str, arguments: Arguments) -> Values | None:
    """`range`, `enumerate`, `zip`, `reversed` and `len`."""
    if name == "range":
        if m.trace is not None:
            for values in arguments:
                m.trace.decide_all(values)
        row = arithmetic.row(arguments)
        if row is not None:
            return (sequence([(Constant(n),) for n in row[:_LONGEST]], UNKNOWN if len(row) > _LONGEST else ()),)
        start = only(arguments[0]) if len(arguments) > 1 else 0
        step = only(arguments[2]) if len(arguments) > 2 else 1
        if isinstance(start, int) and isinstance(step, int):
            return (sequence([(Constant(start + i * step),) for i in range(3)], UNKNOWN),)
        return (sequence([], UNKNOWN),)
    if name == "len":
        one = arguments[0][0] if len(arguments[0]) == 1 else None
        if isinstance(one, Tensor):
            shape = sizes(m, one)[0]
            return shape.items[0] if isinstance(shape, Object) and shape.items else UNKNOWN
        if m.trace is not None:
            m.trace.touch_all(arguments[0], 0)
        return None
    if name == "enumerate":
        start = only(arguments[1]) if len(arguments) > 1 else 0
        items = items_of(m, arguments[0])
        if not isinstance(start, int):
            return None
        return (sequence([_pair((Constant(start + i),), v) for i, v in enumerate(items)]),)
    if name == "zip":
        columns = [items_of(m, values) for values in arguments]
        return (sequence([(sequence(list(row), name="builtins.tuple"),) for row in zip(*columns, strict=False)]),)
    return (sequence(items_of(m, arguments[0], _LONGEST)[::-1]),)


def _pair(first: Values, second: Values) -> Values:
    return (sequence([first, second], name="builtins.tuple"),)


def _mark(arguments: Arguments, mark: str) -> None:
    one = tensor(arguments[0]) if arguments else None
    if one is None:
        return
    dims = arguments[1][0] if len(arguments) > 1 and len(arguments[1]) == 1 else None
    if dims is None:
        one.marks.update(dict.fromkeys(range(len(one.shape or ())), mark))
    held = [only(v) for v in dims.items or ()] if isinstance(dims, Object) else [only((dims,))] if dims else []
    one.marks.update({dim: mark for dim in held if isinstance(dim, int)})


def _decide(m: Recorder, name: str, arguments: Arguments, keywords: Keywords, shift: int) -> None:
    """Numbers that an operation of torch needs while tracing."""
    if m.trace is None:
        return
    for which in DECIDES.get(name, ()):
        if isinstance(which, str):
            given = keywords.get(which, ())
        else:
            given = arguments[which - shift] if 0 <= which - shift < len(arguments) else ()
        m.trace.decide_all(given)


def _method(m: Recorder, receiver: Atom, name: str, arguments: Arguments, keywords: Keywords) -> Values | None:
    while isinstance(receiver, Compiled):
        receiver = receiver.target
    if isinstance(receiver, Tensor):
        if m.trace is not None:
            m.trace.touch(receiver)
        if name == "size":
            shape = sizes(m, receiver)
            index = only(arguments[0]) if arguments else ...
            held = shape[0].items if isinstance(shape[0], Object) else None
            if held is not None and isinstance(index, int) and -len(held) <= index < len(held):
                return held[index]
            return shape if not arguments else UNKNOWN
        if name in ("numel", "nelement"):
            shape = sizes(m, receiver)
            held = shape[0].items if isinstance(shape[0], Object) else None
            return arithmetic.computed(_product, held) or UNKNOWN if held is not None else UNKNOWN
        if name in ("dim", "ndimension"):
            return (Constant(len(receiver.shape)),) if receiver.shape is not None else UNKNOWN
        if name in ("item", "tolist") and m.trace is None:
            known = written.held(receiver, item=name == "item")
            if known is not None:
                return known
        _decide(m, name, arguments, keywords, 1)
        result = _result(m, f"torch.Tensor.{name}", arguments, keywords)
        return tensors.operation(name, [(receiver,), *arguments], keywords, result)
    if isinstance(receiver, Numbers) and name in ("item", "tolist"):
        return written.held(receiver)
    if isinstance(receiver, Object):
        if receiver.name in draws.GENERATORS and m.trace is None:
            return draws.drawn(m, receiver.name, name, arguments, keywords)
        if is_module(m, receiver):
            return _of_module(m, receiver, name, arguments)
        if receiver.items is not None:
            return _of_list(m, receiver, name, arguments)
        if receiver.fields is not None:
            return _of_mapping(m, receiver, name, arguments)
    return None


def _product(*sizes: int) -> int:
    return math.prod(sizes)


def _of_module(m: Recorder, owner: Object, name: str, arguments: Arguments) -> Values | None:
    if name in ("train", "eval"):
        mode = name == "train" and not (arguments and only(arguments[0]) is False)
        for one in descendants(m, owner):
            if isinstance(one, Object):
                m.set_attribute(one, "training", (Constant(mode),))
        return (owner,)
    if name == "parameters":
        return (sequence([(_parameters_of(m, one),) for one in descendants(m, owner) if isinstance(one, Object)]),)
    if name == "requires_grad_":
        for one in descendants(m, owner):
            m.set_attribute(one, layers.LEARNS, arguments[0] if arguments else (Constant(True),))
        return (owner,)
    if name == "register_buffer" and len(arguments) > 1:
        key = only(arguments[0])
        if isinstance(key, str):
            m.set_attribute(owner, key, arguments[1])
            return NONE
    return None


def _parameters_of(m: Recorder, owner: Object) -> Object:
    """The parameters of one module, as one object: what is set on it, is set on the module."""
    made = m.make(None, PARAMETERS)
    made.attributes["of"] = (owner,)
    return made


def _of_list(m: Recorder, owner: Object, name: str, arguments: Arguments) -> Values | None:
    if m.trace is not None:
        m.trace.touch(owner)
    assert owner.items is not None
    if name == "clear" and m.is_certain:
        owner.items, owner.rest = [], ()
        return NONE
    if name in ("pop", "popleft") and m.is_certain and owner.items and not owner.rest:
        at = only(arguments[0]) if arguments else -1 if name == "pop" else 0
        if isinstance(at, int) and -len(owner.items) <= at < len(owner.items):
            return owner.items.pop(at)
    return None


def _of_mapping(m: Recorder, owner: Object, name: str, arguments: Arguments) -> Values | None:
    """What a traced call reads of a mapping that entered it."""
    trace, fields = m.trace, owner.fields or {}
    path = trace.path(owner) if trace is not None else None
    if trace is None or path is None:
        return None
    if name in ("values", "items", "keys"):
        trace.guard((*path, ("keys",)))
        held = {k: trace.given(v, (*path, ("item", k))) for k, v in fields.items()}
        if name == "values":
            return (sequence(list(held.values())),)
        if name == "items":
            return (sequence([_pair((Constant(k),), v) for k, v in held.items()]),)
    if name in ("get", "pop") and arguments and (key := only(arguments[0])) is not ...:
        trace.guard((*path, ("contains", key)))
        if key in fields:
            return trace.given(fields[key], (*path, ("item", key)))
    return None
