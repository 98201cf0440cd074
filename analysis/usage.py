"""What a parameter without annotation must be, from how the function uses it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.definitions import FunctionInfo
from graphmend.analysis.origin import Declared
from graphmend.analysis.values import Tensor

if TYPE_CHECKING:
    from graphmend.analysis.session import Session

#: attributes that tensors share with what else gets passed to a model: modules, configuration,
#: containers, strings, dates
_SHARED = frozenset({*dir(list), *dir(dict), *dir(str), *dir(set), *dir(int)}) | frozenset({
    "to", "cuda", "cpu", "float", "half", "double", "bfloat16", "type", "apply", "share_memory", "requires_grad_",
    "train", "eval", "name", "data", "grad", "names", "T", "H", "real", "imag", "copy", "device", "dtype", "layout",
    "is_cuda", "register_hook", "parameters", "mode", "values", "indices", "size", "map_", "record_stream",
})  # fmt: skip
_TELLING = frozenset({"shape", "ndim"})


def inferred(session: Session, info: FunctionInfo, name: str) -> Tensor | None:
    """A Tensor, if the function uses parameter `name` as only a tensor can be used."""
    if info.uses is None:
        info.uses = _uses(session, info)
    how = info.uses.get(name)
    if how is None:
        return None
    says = f"is used as a Tensor in {info.qualname}: {how}"
    origin = Declared(says, name, (info.module.name, info.qualname))
    return Tensor(origin, None, ("dtype", name), ("shape", name), graph_input=True)


def is_flag(session: Session, info: FunctionInfo, name: str) -> bool:
    """Whether an optional parameter, annotated as a tensor, is a flag in truth: nothing uses it as a tensor, and its
    bare truth is asked.

    Such annotations are common slips of the pen; believing them would put a finding on fine code.
    """
    if not any(p.arg == name for p in (*info.parameters, *info.node.args.kwonlyargs)):
        return False
    if info.uses is None:
        info.uses = _uses(session, info)
    return name not in info.uses


def _uses(session: Session, info: FunctionInfo) -> dict[str, str]:
    """For each name that is used as only a tensor can be, the first such use."""
    found: dict[str, str] = {}
    computed: list[ast.Assign] = []
    for node in ast.walk(info.node):
        if isinstance(node, ast.Assign):
            if isinstance(node.value, (ast.BinOp, ast.UnaryOp)):
                computed.append(node)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in _TELLING or (node.attr not in _SHARED and _is_tensor_member(session, node.attr)):
                found.setdefault(node.value.id, f"{node.value.id}.{node.attr}")
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Name):
            callee = info.module.qualified(node.func)
            if callee is not None and callee.startswith("torch.") and _takes_tensor(session, callee):
                found.setdefault(node.args[0].id, f"{callee}({node.args[0].id})")
    for statement in computed:
        operands = {n.id for n in ast.walk(statement.value) if isinstance(n, ast.Name)}
        target = statement.targets[0]
        if len(operands) == 1 and isinstance(target, ast.Name) and target.id in found:
            found.setdefault(operands.pop(), f"{target.id} = {ast.unparse(statement.value)}, and {found[target.id]}")
    return found


def _is_tensor_member(session: Session, attr: str) -> bool:
    return session.torch.knows(f"torch.Tensor.{attr}") or (
        attr.startswith("is_") and session.torch.attribute(attr) is not None
    )


def _takes_tensor(session: Session, callee: str) -> bool:
    overloads = session.torch.overloads(callee)
    return bool(overloads) and all(o.positional and o.positional[0] in o.tensors_only for o in overloads)
