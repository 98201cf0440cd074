"""What switches gradients on and off: as a context, as a decorator, or as a call."""

from __future__ import annotations

import ast


def _names(name: str) -> frozenset[str]:
    """The names under which torch publishes one of its gradient modes (torch 2.13)."""
    return frozenset(f"{module}.{name}" for module in ("torch", "torch.autograd", "torch.autograd.grad_mode"))


_OFF = _names("no_grad")
_ON = _names("enable_grad")
#: off unless the argument says otherwise
_INFERENCE = _names("inference_mode")
#: as the argument says; as a call alone these switch at once
SETS_GRADIENTS = _names("set_grad_enabled") | {"torch._C._set_grad_enabled"}

GRADIENT_MODES = _OFF | _ON | _INFERENCE | SETS_GRADIENTS


def switches_gradients_off(name: str | None, node: ast.expr) -> bool | None:
    """Whether `node`, a context or decorator of this qualified name, switches gradients off for certain; None where it
    has no say in that.
    """
    if name not in GRADIENT_MODES:
        return None
    arguments = [*node.args, *(k.value for k in node.keywords)] if isinstance(node, ast.Call) else []
    given = arguments[0].value if arguments and isinstance(arguments[0], ast.Constant) else None
    if name in _INFERENCE:
        return not arguments or given is True
    return name in _OFF or (name in SETS_GRADIENTS and given is False)
