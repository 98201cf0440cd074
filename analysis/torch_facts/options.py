"""Options of `torch._dynamo.config` by which TorchDynamo traces other calls than by default (torch 2.13)."""

from __future__ import annotations

from typing import Final

#: option, as a program sets it ("no X" where it switches X off), to the calls that break then: names, or beginnings of
#: names that end in a point, with the break's id
REFUSED_WITH: Final[dict[str, dict[str, str]]] = {
    "no trace_numpy": {
        "torch.Tensor.numpy": "GB0105", "torch.from_numpy": "GB0231", "numpy.": "GB0293", "numpy.ndarray.": "",
    },
    "enable_trace_unittest": {
        f"unittest.TestCase.{name}": "GB0060" for name in ("assertNotWarns", "assertWarnsRegex", "assertWarns")
    },
    "use_numpy_random_stream": {"numpy.random.": "GB0298"},
}  # fmt: skip

#: option to the calls that trace then, and break by default; names and beginnings as above
TRACED_WITH: Final[dict[str, frozenset[str]]] = {
    "trace_autograd_ops": frozenset({"torch.Tensor.backward", "torch.autograd.grad"}),
    "enable_trace_unittest": frozenset({"unittest.TestCase."}),
    "enable_p2p_compilation": frozenset(
        f"torch.distributed.{name}" for name in ("isend", "irecv", "batch_isend_irecv", "P2POp")
    ),
    "no graph_break_on_nn_param_ctor": frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter"}),
}

OPTIONS: Final = frozenset(
    {option.removeprefix("no ") for option in (*REFUSED_WITH, *TRACED_WITH)}
    | {"enable_trace_contextlib", "debug_force_graph_break_on_leaf_return"}
    | {"inject_BUILD_SET_unimplemented_TESTING_ONLY", "only_allow_pt2_compliant_ops"}
)


def may_refuse(callee: str) -> bool:
    """Whether a call breaks with some option, by which it does not break without."""
    return any(refused_with(frozenset({option}), callee) is not None for option in REFUSED_WITH)


def refused_with(options: frozenset[str], callee: str) -> str | None:
    """The id of the break that a call makes with these options; None where it does not."""
    for option in options & REFUSED_WITH.keys():
        table = REFUSED_WITH[option]
        owner = callee
        while owner:
            found = table.get(owner)
            if found is not None:
                return found or None
            owner = owner.rstrip(".").rpartition(".")[0]
            owner += "." if owner else ""
    return None


def traced_with(options: frozenset[str], callee: str) -> bool:
    """Whether a call that breaks by default traces with these options."""
    owner = callee.rpartition(".")[0] + "."
    return any({callee, owner} & TRACED_WITH[option] for option in options & TRACED_WITH.keys())
