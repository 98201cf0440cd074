"""What the objects of `torch.distributions` give (torch 2.13): TorchDynamo traces through them, as they are Python."""

from __future__ import annotations

import ast

from graphmend.analysis.lattice.evidence import Evidence
from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Tensor, Value

_MODULE = "torch.distributions."
_METHODS = frozenset(
    "sample sample_n rsample log_prob cdf icdf entropy perplexity enumerate_support kl_divergence "
    "log_abs_det_jacobian".split()
)
_ATTRIBUTES = frozenset(
    "mean mode variance stddev probs logits loc scale rate concentration concentration0 concentration1 df "
    "covariance_matrix precision_matrix scale_tril cov_factor cov_diag".split()
)


def is_distribution(value: Value) -> bool:
    """Whether a value is an object of a class of `torch.distributions`."""
    return isinstance(value, ExternalInstance) and value.cls.startswith(_MODULE)


def given(name: str, node: ast.AST) -> Tensor | None:
    """The tensor that a function of `torch.distributions`, or a method of its objects, gives; None for any other."""
    last = name.rpartition(".")[2]
    return _tensor("is computed by a distribution", node) if name.startswith(_MODULE) and last in _METHODS else None


def attribute(value: Value, name: str, node: ast.AST) -> Tensor | None:
    """The tensor that an attribute of a distribution is; None where it is none."""
    return (
        _tensor("is a parameter or a moment of a distribution", node)
        if is_distribution(value) and name in _ATTRIBUTES
        else None
    )


def _tensor(says: str, node: ast.AST) -> Tensor:
    return Tensor(Evidence(f"{says}, so a Tensor", node))
