"""Runs the demo's models and keeps, or compares, what came of it: outputs, gradients, log records, graphs.

    python -m demo_parts.runs FILE DEVICE BACKEND MODEL... keep       with the package as it was
    python -m demo_parts.runs FILE DEVICE BACKEND MODEL... compare    with the mended one first on the path; JSON

Each model runs eagerly and compiled, on each of its sides. Knows nothing of GraphMend.
"""

from __future__ import annotations

import importlib
import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch._dynamo.backends.registry import lookup_backend
from torch.utils._pytree import tree_leaves
from transformers.utils import logging as transformers_logging

from demo_parts.models import MODELS, Model, Side

TOLERANCE = {torch.float16: 2e-3, torch.float32: 1e-5}
"""Of compiled code, relative to the largest value: a compiler may reorder sums. Eager code must be equal to the bit."""

Result = dict[str, Any]


class Records(logging.Handler):
    """Collects what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname} {record.name}: {record.getMessage()}")


class Graphs:
    """A backend that counts the graphs it is handed, and hands them on."""

    def __init__(self, backend: str) -> None:
        self.backend = lookup_backend(backend)
        self.count = 0

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        self.count += 1
        return self.backend(graph, inputs)


def built(model: Model, device: str) -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    """The model and its inputs, the same in every process."""
    names = {"torch": torch, **vars(importlib.import_module(model.module))}
    torch.manual_seed(0)
    module, inputs = eval(model.init, names), eval(model.inputs, names)
    return module.to(device), {name: value.to(device) for name, value in inputs.items()}


def chosen(device: str) -> str:
    """`auto` is CUDA where it works."""
    if device != "auto":
        return device
    try:
        torch.zeros(1, device="cuda")
    except Exception:
        return "cpu"
    return "cuda"


def leaves(output: Any) -> Iterator[torch.Tensor]:
    """The tensors of a model's output, those of its caches among them."""
    for value in output.values():
        legacy = getattr(value, "to_legacy_cache", None)
        yield from (leaf for leaf in tree_leaves(legacy() if legacy else value) if isinstance(leaf, torch.Tensor))


def run(call: Any, module: torch.nn.Module, inputs: Any, reaches: str, records: Records) -> Result:
    """One call forwards and backwards."""
    records.lines.clear()
    transformers_logging.warning_once.cache_clear()
    module.zero_grad()
    output = call(**inputs)
    logged = list(records.lines)
    found = list(leaves(output))
    torch.stack([leaf.float().mean() for leaf in found if leaf.requires_grad]).sum().backward()  # type: ignore[no-untyped-call]
    return {
        "values": [leaf.detach().cpu() for leaf in found],
        "gradients": {name: p.grad.cpu() for name, p in module.named_parameters() if p.grad is not None},
        "logged": logged,
        "reached": bool(eval(reaches, {"torch": torch, "output": output})),
    }


def runs(model: Model, side: Side, device: str, backend: str, records: Records) -> Result:
    """The eager and the compiled run of one side, and the number of graphs."""
    module, inputs = built(model, device)
    with torch.no_grad():
        exec(side.prepare, {"torch": torch, "model": module})
    torch._dynamo.reset()
    graphs = Graphs(backend)
    return {
        "eager": run(module, module, inputs, side.reaches, records),
        "compiled": run(torch.compile(module, backend=graphs), module, inputs, side.reaches, records),
        "graphs": graphs.count,
    }


def difference(old: Result, new: Result) -> tuple[float, bool]:
    """The largest difference of a value or gradient, and whether all are within tolerance. Where another set of values
    came out, it is infinite."""
    if len(old["values"]) != len(new["values"]) or old["gradients"].keys() != new["gradients"].keys():
        return float("inf"), False
    pairs = [([a], [b]) for a, b in zip(old["values"], new["values"], strict=True)]
    # Gradients share one scale: some are zero but for rounding.
    pairs.append(([*old["gradients"].values()], [new["gradients"][name] for name in old["gradients"]]))
    gaps = [(max(map(distance, olds, news)), allowed(olds)) for olds, news in pairs]
    return max(gap for gap, _ in gaps), all(gap <= most for gap, most in gaps)


def distance(a: torch.Tensor, b: torch.Tensor) -> float:
    """The largest difference; infinite where one is NaN or infinite and the other is not."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return float("inf")
    wide_a, wide_b = a.double(), b.double()
    same = (wide_a == wide_b) | (wide_a.isnan() & wide_b.isnan())
    return float((wide_a - wide_b).abs().masked_fill(same, 0.0).nan_to_num(nan=float("inf")).max())


def allowed(tensors: list[torch.Tensor]) -> float:
    largest = max(float(t.double().abs().nan_to_num(nan=0.0, posinf=0.0).max()) for t in tensors)
    return largest * max(TOLERANCE.get(t.dtype, 0.0) for t in tensors)


def compared(model: Model, old: list[Result], new: list[Result]) -> list[dict[str, Any]]:
    """One object for each side."""
    return [
        {
            "side": side.name,
            "reached": before["eager"]["reached"] and after["eager"]["reached"],
            "finite": all(bool(v.isfinite().all()) for v in before["eager"]["values"]),
            "values": len(before["eager"]["values"]),
            "gradients": len(before["eager"]["gradients"]),
            "eager_difference": difference(before["eager"], after["eager"])[0],
            "compiled_difference": difference(before["eager"], after["compiled"])[0],
            "compiled_equal": difference(before["eager"], after["compiled"])[1],
            "graphs": [before["graphs"], after["graphs"]],
            "logged": before["eager"]["logged"],
            "logged_eager": after["eager"]["logged"],
            "logged_compiled": after["compiled"]["logged"],
        }
        for side, before, after in zip(model.sides, old, new, strict=True)
    ]


def main(file: str, device: str, backend: str, *names: str, compare: bool) -> None:
    records, device = Records(), chosen(device)
    logging.getLogger("transformers").addHandler(records)
    transformers_logging.disable_default_handler()
    made = {n: [runs(MODELS[n], side, device, backend, records) for side in MODELS[n].sides] for n in names}
    if compare:
        kept = torch.load(file, weights_only=True)
        json.dump({name: compared(MODELS[name], kept[name], made[name]) for name in names}, sys.stdout)
    else:
        torch.save(made, file)


if __name__ == "__main__":
    main(*sys.argv[1:-1], compare=sys.argv[-1] == "compare")
