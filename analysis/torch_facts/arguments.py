"""Calls that TorchDynamo traces, but not with every argument, read from where torch 2.13 raises the break.

An entry says which argument is refused, as words about it:

* which: `0` or `0 name`, an argument by position (and name); `name`, one that is given by its name only; `keywords`,
  any name that is not among the words; `positional`, the number of positional arguments
* words, one of which must hold: a kind of value (`tensor`, `ndarray`, `object` for an instance of a plain class of the
  program, `number`, `true`, `text`, `none`, `list`, `tuple`, `dict`, `set`, `function`, `partial`); `of-X`, a
  container that holds an X; `empty`, one without items; `not X Y`, any known kind but these; `no-device`, another text
  than `DEVICES`; `written`, text with a tensor's value in it; `given` and `missing`; `>1`, of a number.
  `partial-first`, `strided-tensor`, `partial-of-tensor`, `global-function`, `reads-tensor`, `external-function`,
  `tensor-method` and `the-class-Tensor` say what they are, `reads-layout` and `reads-strides` what a function asks of
  its argument
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Demand(NamedTuple):
    """What is refused of the argument of a call."""

    gb_id: str
    which: str
    words: tuple[str, ...]
    reason: str


#: what torch has a device for
DEVICES: Final = frozenset("cpu cuda mps xpu mtia hpu maia meta privateuseone xla ipu vulkan lazy ve fpga".split())

_COND = "torch._higher_order_ops.cond.cond_op torch._higher_order_ops.cond_op torch.ops.higher_order.cond"
_CONDS = f"torch.cond torch._higher_order_ops.cond torch._higher_order_ops.cond.cond {_COND}"
_LOOP = "torch._higher_order_ops.while_loop.while_loop_op torch.ops.higher_order.while_loop"
_LOOPS = f"torch.while_loop torch._higher_order_ops.while_loop torch._higher_order_ops.while_loop.while_loop {_LOOP}"
_ASSOCIATIVE = "torch._higher_order_ops.associative_scan.associative_scan_op torch.ops.higher_order.associative_scan"
_SCAN = "torch._higher_order_ops.scan.scan_op torch.ops.higher_order.scan"
_MAP = "torch._higher_order_ops.map.map_impl torch.ops.higher_order.map_impl"
_GRADIENTS = "torch._higher_order_ops.wrap.wrap_with_set_grad_enabled"
_AUTOCAST = "torch._higher_order_ops.wrap.wrap_with_autocast"
_STRICT = "torch._higher_order_ops.strict_mode.strict_mode_op torch.ops.higher_order.strict_mode"
_DELEGATE = "torch._higher_order_ops.executorch_call_delegate.executorch_call_delegate"
_HINTS = "torch._higher_order_ops.hints_wrap.hints_wrapper"
_DTYPE = "torch._higher_order_ops.out_dtype.out_dtype"
_NN_PARAMETER = "torch.nn.Parameter torch.nn.parameter.Parameter"
_STREAM = "torch.accelerator.current_stream torch.accelerator.memory.current_stream"
_CHECKS = "torch._check torch._check_index torch._check_value torch._check_type torch._check_not_implemented"
_COLLECTIVES = " ".join(
    f"torch.distributed.{name}"
    for name in "all_reduce all_gather_into_tensor reduce_scatter_tensor all_to_all_single broadcast reduce".split()
)
_NUMPY_KINDS = "numpy.finfo numpy.iinfo numpy.dtype"

_SEQUENCE = "takes a list or tuple there"
_NO_NAMES = "takes no such argument by its name"

#: break's id; which argument; words; why; qualified names
_TABLE: Final[tuple[tuple[str, str, str, str, str], ...]] = (
    ("GB0302", "1 true_fn", "number text none tensor list tuple dict", "calls what is given there", _CONDS),
    ("GB0302", "2 false_fn", "number text none tensor list tuple dict", "calls what is given there", _CONDS),
    ("GB0302", "0 cond_fn", "number text none tensor list tuple dict", "calls what is given there", _LOOPS),
    ("GB0302", "1 body_fn", "number text none tensor list tuple dict", "calls what is given there", _LOOPS),
    ("GB0309", "3 operands", "missing", "takes four arguments", _COND),
    ("GB0309", "keywords", "pred true_fn false_fn operands", _NO_NAMES, _COND),
    ("GB0310", "0 pred", "list tuple dict set function object", "takes a tensor or a number as predicate", _CONDS),
    ("GB0311", "3 operands", "dict tensor number text none", _SEQUENCE, _CONDS),
    ("GB0312", "3 operands", "of-object of-list of-dict", "takes tensors and numbers as operands", _CONDS),
    ("GB0303", "keywords", "cond_fn body_fn carried_inputs additional_inputs operands", _NO_NAMES, _LOOP),
    ("GB0304", "3 additional_inputs", "dict tensor number text none", _SEQUENCE, _LOOP),
    ("GB0341", "2 additional_inputs", "partial-first", "takes a partial and the tensors", _ASSOCIATIVE),
    ("GB0315", "1 xs", "tensor dict number text none", _SEQUENCE, _ASSOCIATIVE),
    ("GB0301", "1 xs", "of-number of-text of-object", "scans over tensors", _ASSOCIATIVE),
    ("GB0317", "1 xs", "of-empty-tensor", "scans over at least one element", _ASSOCIATIVE),
    ("GB0316", "2 additional_inputs", "dict tensor number text none", _SEQUENCE, _ASSOCIATIVE),
    ("GB0342", "0 combine_fn", "function", "takes a partial or a module there", _SCAN),
    ("GB0320", "2 xs", "tensor dict number text none", _SEQUENCE, _SCAN),
    ("GB0324", "2 xs", "of-empty-tensor", "scans over at least one element", _SCAN),
    ("GB0322", "1 init", "empty", "needs a value to begin with", _SCAN),
    ("GB0321", "1 init", "tensor dict number text none", _SEQUENCE, _SCAN),
    ("GB0323", "3 additional_inputs", "dict tensor number text none", _SEQUENCE, _SCAN),
    ("GB0326", "1 xs", "of-empty-tensor", "maps over at least one element", _MAP),
    ("GB0325", "keywords", "", _NO_NAMES, _MAP),
    ("GB0327", "keywords", "", _NO_NAMES, _DELEGATE),
    ("GB6017", "0", "number text none tensor list tuple dict", "takes a lowered module there", _DELEGATE),
    ("GB0330", "keywords", "", _NO_NAMES, _GRADIENTS),
    ("GB0332", "1", "reads-tensor", "takes functions that read no other tensor", _GRADIENTS),
    ("GB0334", "4", "reads-tensor", "takes functions that read no other tensor", _AUTOCAST),
    ("GB0102", "0", "reads-layout", "hands the hook a gradient whose layout is not known yet",
     "torch.Tensor.register_hook"),
    ("GB7444", "0", "reads-strides", "hands the hook a gradient whose strides are not known yet",
     "torch.Tensor.register_hook"),
    ("GB0331", "0", "tensor", "takes a constant there", _GRADIENTS),
    ("GB0351", "2", "object", "hands on tensors only", _GRADIENTS),
    ("GB0351", "3", "object", "hands on tensors only", _GRADIENTS),
    ("GB0333", "keywords", "", _NO_NAMES, _AUTOCAST),
    ("GB0344", "0", "tensor", "takes a constant there", _AUTOCAST),
    ("GB0344", "1", "tensor", "takes a constant there", _AUTOCAST),
    ("GB0344", "2", "tensor", "takes a constant there", _AUTOCAST),
    ("GB0344", "3", "tensor", "takes a constant there", _AUTOCAST),
    ("GB0335", "1", "not list tuple", _SEQUENCE, _HINTS),
    ("GB0335", "2", "not dict", "takes a dictionary there", _HINTS),
    ("GB0335", "hints", "missing", "needs hints", _HINTS),
    ("GB0336", "keywords", "", _NO_NAMES, _DTYPE),
    ("GB0345", "1", "of-list of-tuple of-dict of-set", "takes tensors that stand alone", _STRICT),
    ("GB0337", "keywords", "", _NO_NAMES, _STRICT),
    ("GB0223", "positional", ">1", "takes one argument while tracing", "torch.compile"),
    ("GB6735", "positional", ">1", "takes one argument while tracing",
     "torch.library.wrap_triton torch._library.triton.wrap_triton"),
    ("GB0248", "positional", ">1", "takes one device", "torch.get_device_module"),
    ("GB0286", "0 device", "no-device", "knows no such device", "torch.get_device_module"),
    ("GB0285", "positional", ">1", "takes one device", _STREAM),
    ("GB0249", "0 device", "no-device", "knows no such device", _STREAM),
    ("GB0360", "0", "tensor", "takes a number", "torch.fx.experimental.symbolic_shapes.guard_scalar"),
    ("GB5195", "1", "object", "takes tensors and numbers", "torch._prims_common.elementwise_dtypes"),
    ("GB1140", "1", "object", "takes tensors", "torch._functorch.eager_transforms._autograd_grad"),
    ("GB0110", "from", "given", "is no valid name of an operation's argument", "torch.Tensor.uniform_"),
    ("GB0117", "positional", ">0", "takes no argument", "torch.Tensor.element_size"),
    ("GB0128", "positional", ">1", "takes a tensor alone", "torch.Tensor.set_"),
    ("GB0170", "3 error_if_nonfinite", "true", "branches on the norm of the gradients",
     "torch.nn.utils.clip_grad_norm_ torch.nn.utils.clip_grad.clip_grad_norm_"),
    ("GB0170", "2 error_if_nonfinite", "true", "branches on the norm", "torch.nn.utils.get_total_norm"),
    ("GB0001", "0", "the-class-Tensor", "takes a subclass of Tensor", "torch.Tensor.as_subclass"),
    ("GB0237", "1 requires_grad", "tensor", "takes a constant there", _NN_PARAMETER),
    ("GB0245", "0", "tensor", "takes a list of tensors", "torch.nested.nested_tensor"),
    ("GB0172", "async_op", "true", "waits for the result at once while tracing", _COLLECTIVES),
    ("GB0243", "0", "object", "takes a number or a sequence", "torch.nn.modules.utils._pair "
     "torch.nn.modules.utils._single torch.nn.modules.utils._triple torch.nn.modules.utils._quadruple"),
    ("GB9840", "1 message", "global-function", "takes a function that is written where it is called", _CHECKS),
    ("GB9158", "1 message", "reads-tensor", "keeps no tensor for the message", _CHECKS),
    ("GB0086", "context_fn", "partial-of-tensor", "takes a function of constants there",
     "torch.utils.checkpoint.checkpoint"),
    ("GB9277", "0", "external-function", "binds functions that are written in Python", "types.FunctionType.__get__"),
    ("GB0247", "out", "empty-tensor of-empty-tensor", "writes into a tensor of the result's shape", "torch.out"),
    ("GB0242", "out", "strided-tensor", "writes into a tensor that lies in memory in order", "torch.out"),
    ("GB0241", "out", "of-strided-tensor", "writes into tensors that lie in memory in order", "torch.out"),
    ("GB0084", "0", "written", "needs the attribute's name while tracing", "builtins.object.__delattr__"),
    ("GB0273", "keywords", "", _NO_NAMES, "builtins.ImportError builtins.ModuleNotFoundError builtins.AttributeError "
     "builtins.NameError"),
    ("GB0155", "keywords", "key", _NO_NAMES, "itertools.groupby"),
    ("GB0268", "keywords", "repeat", _NO_NAMES, "itertools.product"),
    ("GB0258", "positional", ">2", "takes an iterable and a length", "collections.deque"),
    ("GB0260", "positional", "<1", "needs a function", "functools.partial"),
    ("GB0297", "keywords", "", _NO_NAMES, "random.Random"),
    ("GB0297", "positional", ">1", "takes one seed", "random.Random"),
    ("GB0193", "positional", "<2", "takes two arguments", "builtins.isinstance"),
    ("GB4393", "0", "tensor number text list tuple dict set", "takes a class", "builtins.issubclass"),
    ("GB0183", "0", "of-list of-dict of-set", "takes keys that can be hashed", "builtins.dict.fromkeys"),
    ("GB0190", "1", "written", "needs the attribute's name while tracing", "builtins.getattr"),
    ("GB0254", "1", "written", "needs the attribute's name while tracing", "builtins.setattr"),
    ("GB0467", "0", "list tuple dict set number text", "sets attributes of objects and modules", "builtins.setattr"),
    ("GB0299", "0", "written", "needs the text while tracing", "re.Pattern.match re.Pattern.search re.Pattern.sub "
     "re.Pattern.findall re.Pattern.fullmatch re.Pattern.split"),
    ("GB0201", "1", "of-tensor", "needs the fields' names while tracing", "collections.namedtuple"),
    ("GB0300", "0", "ndarray", "takes a constant", _NUMPY_KINDS),
    ("GB0175", "0", "tensor-method", "can't tell the type of a tensor's method", "builtins.isinstance"),
    ("GB0150", "0", "tensor-method", "does not model a tensor's method as an object", "builtins.hasattr"),
)  # fmt: skip


def _demands() -> dict[str, tuple[Demand, ...]]:
    found: dict[str, tuple[Demand, ...]] = {}
    for gb_id, which, words, reason, names in _TABLE:
        demand = Demand(gb_id, which, tuple(words.split()), reason)
        for name in names.split():
            found[name] = (*found.get(name, ()), demand)
    return found


DEMANDS: Final = _demands()
