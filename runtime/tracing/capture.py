"""Turns an output call that Dynamo is tracing into a `Site` and the tensors and numbers that the graph must pass to it.

Knows Dynamo's variable trackers, as they are in torch 2.10 to 2.13. Whatever is not clearly understood raises
`Uncapturable`, and the call breaks the graph as it would have without us: output is never lost and never wrong.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

import torch
from torch._dynamo.exc import TorchDynamoException
from torch._dynamo.guards import GuardBuilder, install_guard
from torch._dynamo.source import AttrSource
from torch._dynamo.variables import ConstantVariable, TupleVariable
from torch._dynamo.variables.base import VariableTracker
from torch._dynamo.variables.builder import wrap_fx_proxy
from torch._dynamo.variables.dicts import ConstDictVariable
from torch._dynamo.variables.lists import ListVariable, SizeVariable
from torch._dynamo.variables.misc import GetAttrVariable, StringFormatVariable
from torch._dynamo.variables.tensor import (
    NumpyNdarrayVariable,
    SymNodeVariable,
    TensorVariable,
    UnspecializedPythonVariable,
)
from torch._dynamo.variables.torch import TorchInGraphFunctionVariable

try:
    from torch._dynamo.variables.user_defined import NamedTupleVariable, StructSequenceVariable
except ImportError:  # before 2.12 one class stands for both
    from torch._dynamo.variables.lists import NamedTupleVariable  # type: ignore[attr-defined, no-redef]

    StructSequenceVariable = NamedTupleVariable  # type: ignore[assignment, misc]
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from ..calls import Frame
from ..deferred import Later
from ..templates import sites
from ..templates.template import Attribute, Call, Constant, Group, Mapping, Number, Part, Stream, Tensor
from ..templates.tensor_appearance import Appearance, appearance_of
from .capturability import (
    Uncapturable,
    break_if_tracing_fails,
    check,
    check_computing,
    check_function,
    check_raising,
    check_unchanged,
    check_writes,
)


def capture(context: Any) -> None:
    """Binds `site`, `tensors` and `numbers` in the frame of `emit`; they stay None where it cannot be carried."""
    tx = context._i_will_not_complain_if_bc_breaks_InstructionTranslator()
    try:
        reader = _Reader(tx)
        names = tx.symbolic_locals
        if "changed" in names:
            check_computing()
            check_raising(tx)
        site = reader.site(names["function"], names["args"], names["kwargs"], names.get("condition"))
        size = names.get("size")
        if isinstance(size, TupleVariable) and not size.items:
            check_raising(tx)  # for `number_on_host`
            check_writes(tx)
        break_if_tracing_fails(tx)
    except TorchDynamoException:
        raise  # Dynamo's own signals
    except Exception:
        return  # `Uncapturable`, a value without a constant, or something that another torch has changed
    tx.symbolic_locals["site"] = ConstantVariable.create(sites.add(site))
    tx.symbolic_locals["tensors"] = TupleVariable(reader.tensors)
    tx.symbolic_locals["numbers"] = TupleVariable(reader.numbers)


def permit(context: Any) -> None:
    """Binds `permitted` in the frame of `select`: True where operators with effects stay in their place."""
    tx = context._i_will_not_complain_if_bc_breaks_InstructionTranslator()
    try:
        check(tx)
    except TorchDynamoException:
        raise  # Dynamo's own signals
    except Exception:
        return
    tx.symbolic_locals["permitted"] = ConstantVariable.create(True)


def _frames(tx: Any) -> tuple[Frame, ...]:
    """The traced frames around `emit`, innermost first."""
    frames = []
    while (tx := tx.parent) is not None:
        summary = tx.frame_summary()
        frames.append(Frame(summary.filename, summary.lineno or 0, summary.name, tx.f_globals))
    return tuple(frames)


class _Reader:
    """Reads one call, and collects the values that the graph computes."""

    def __init__(self, tx: Any) -> None:
        self.tx = tx
        # the frame is that of `on_host`, `number_on_host` or `stores_on_host`
        self.is_host = not tx.symbolic_locals.keys().isdisjoint(("size", "changed"))
        self.tensors: list[VariableTracker] = []
        self.numbers: list[VariableTracker] = []

    def site(
        self,
        function: VariableTracker,
        args: VariableTracker,
        kwargs: VariableTracker,
        condition: VariableTracker | None,
    ) -> sites.Site:
        check(self.tx)
        asked = None if condition is None else self.value(condition)
        site = sites.Site(self.function(function), self.group(args), self.mapping(kwargs), _frames(self.tx), asked)
        if isinstance(site.function, Attribute) and isinstance(site.function.owner, Tensor):
            raise Uncapturable("a tensor's method is no output")
        constants = {key: part.value for key, part in site.kwargs.items if isinstance(part, Constant)}
        check_function(self.tx, site.function.fill((), ()), constants)
        return site

    # Values

    def value(self, variable: VariableTracker) -> Part:
        variable = variable.realize()
        match variable:
            case NumpyNdarrayVariable():
                return self.array(variable)
            case TensorVariable():
                return self.tensor(variable)
            case SymNodeVariable():
                return self.number(variable)
            case StringFormatVariable():
                args = Group(tuple, tuple(map(self.value, variable.sym_args)))
                kwargs = Mapping(tuple((key, self.value(value)) for key, value in variable.sym_kwargs.items()))
                return Call(Constant(variable.format_string.format), args, kwargs)
            case NamedTupleVariable() if variable.tuple_cls is Later:
                if variable.source is not None:  # it was made before a graph break: its parts are inputs now
                    raise Uncapturable("a call that was put off before the graph broke")
                function, arguments, keywords = variable.items
                return Call(self.function(function), self.group(arguments), self.mapping(keywords))
            case NamedTupleVariable() | StructSequenceVariable():  # a structseq, such as `torch.return_types.max`
                kind = variable.tuple_cls
                return Group(getattr(kind, "_make", kind), tuple(map(self.value, variable.items)))
            case SizeVariable() | TupleVariable() | ListVariable():
                return self.group(variable)
            case ConstDictVariable() if variable.python_type() is dict:
                return self.mapping(variable)
        if variable.is_python_constant():
            return self.constant(variable.as_python_constant())
        return self.stream(variable)

    def constant(self, value: Any) -> Constant:
        if self.is_host and isinstance(value, Iterator):
            raise Uncapturable("what is used up by the first run of the graph")
        return Constant(value)

    def group(self, variable: Any) -> Group:
        variable = variable.realize()
        kind = variable.python_type()
        if kind not in (tuple, list, torch.Size):
            raise Uncapturable(f"a {kind.__name__}")
        return Group(kind, tuple(map(self.value, variable.items)))

    def mapping(self, variable: Any) -> Mapping:
        variable = variable.realize()
        return Mapping(tuple((key.vt.as_python_constant(), self.value(value)) for key, value in variable.items.items()))

    def tensor(self, variable: TensorVariable) -> Tensor:
        example = variable.as_proxy().node.meta["example_value"]
        if isinstance(variable, UnspecializedPythonVariable):
            how = Appearance(number=True)
        elif variable.python_type() in (torch.Tensor, torch.nn.Parameter):
            how = appearance_of(example)
        else:
            raise Uncapturable("a tensor subclass has its own text")
        self.tensors.append(variable)
        return Tensor(len(self.tensors) - 1, how)

    def array(self, variable: NumpyNdarrayVariable) -> Tensor:
        """An array for a function on the host. Where NumPy gives a scalar, Dynamo has a 0-d array."""
        example = variable.as_proxy().node.meta["example_value"]
        if not self.is_host or not example.dim() or example.device.type != "cpu":
            raise Uncapturable("an array")
        self.tensors.append(variable)
        return Tensor(len(self.tensors) - 1, Appearance(array=True))

    def number(self, variable: SymNodeVariable) -> Part:
        if variable.python_type() is bool:
            if free_unbacked_symbols(variable.sym_num):
                raise Uncapturable("a truth value that nothing known while tracing decides")
            return Constant(variable.evaluate_expr())
        if variable.python_type() is float:
            return self.real(variable)
        self.numbers.append(variable)
        return Number(len(self.numbers) - 1)

    def real(self, variable: SymNodeVariable) -> Tensor:
        """A float goes as a tensor: Inductor 2.13 lowers no symbolic float as an argument of an operator.

        Dynamo makes a float input `tensor.item()`; that tensor is taken. A float computed from it becomes a constant
        with a guard, in AOTAutograd 2.13.
        """
        node = variable.as_proxy().node
        if node.target == "item" and node.args[0].op == "placeholder" and self.tx.output.current_tracer.parent is None:
            proxy = torch.fx.Proxy(node.args[0], self.tx.output.current_tracer)
            tensor = wrap_fx_proxy(self.tx, proxy, example_value=node.args[0].meta["example_value"])
        else:
            float64 = {"dtype": ConstantVariable.create(torch.float64)}
            tensor = TorchInGraphFunctionVariable(torch.scalar_tensor).call_function(self.tx, [variable], float64)
        self.tensors.append(tensor)
        return Tensor(len(self.tensors) - 1, Appearance(number=True))

    # Functions and the objects that they belong to

    def function(self, variable: VariableTracker) -> Part:
        variable = variable.realize()
        if isinstance(variable, GetAttrVariable) and isinstance(variable.obj.realize(), TensorVariable):
            return Attribute(self.value(variable.obj), variable.name)
        if variable.source is None:
            return Constant(variable.as_python_constant())
        value = self.behind(variable.source)
        owner = getattr(value, "__self__", None)
        is_of_module = isinstance(variable.source, AttrSource) and isinstance(
            self.behind(variable.source.base), types.ModuleType
        )
        if owner is None or isinstance(owner, types.ModuleType) or is_of_module:
            return Constant(self.same(variable.source, value))
        if not isinstance(variable.source, AttrSource):
            raise Uncapturable("a bound method that is not looked up where it is called")
        return Attribute(self.object(variable.source.base, owner), variable.source.member)

    def stream(self, variable: VariableTracker) -> Part:
        if variable.source is None:
            raise Uncapturable("an object that was made in the region")
        value = self.behind(variable.source)
        if not callable(getattr(value, "write", None)):
            raise Uncapturable("an object whose text may change before the graph runs")
        return self.object(variable.source, value)

    def object(self, source: Any, value: Any) -> Part:
        """An object that outlives the region: the owner of an output function, or a stream."""
        if isinstance(value, torch.nn.Module):
            raise Uncapturable("a module would be kept alive, with its parameters")
        check_unchanged(self.tx, value)
        if isinstance(source, AttrSource) and self.behind(source.base) is sys:
            return Stream(source.member)
        return Constant(self.same(source, value))

    def behind(self, source: Any) -> Any:
        """The object that a source of Dynamo's names."""
        root = self.tx.output.root_tx
        return source.get_value({"G": root.f_globals, "L": root.f_locals}, {}, {})

    def same(self, source: Any, value: Any) -> Any:
        """`value`, with the guard that it is this very object when the graph runs again."""
        install_guard(source.make_guard(GuardBuilder.ID_MATCH))
        return value
