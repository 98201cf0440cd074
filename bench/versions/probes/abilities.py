"""What the runtime can do with this interpreter's torch: run with `src` on the path, answers as JSON.

`output`: a printed line stays in one graph, with its text and in its place; `in functions`: in the body of an
`autograd.Function`, too; `switches`: the capture switches of `run` pass their self-test.
"""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

import torch
import torch._dynamo

from graphmend.runtime import emit, switches


class Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        emit(print, "forward", x.sum())
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2


def plain(x: Any) -> Any:
    y = x + 1
    emit(print, "sum", y.sum(), f"{y[0]:.2f}")
    print_twice = y * 2
    emit(print, "again", print_twice.shape)
    return print_twice


def within(x: Any) -> Any:
    return Function.apply(x + 1) * 3


def holds(function: Any) -> bool:
    """Whether two compiled calls print what plain Python prints, as one graph, with its gradients."""
    graphs = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return torch._dynamo.lookup_backend("aot_eager")(graph, inputs)

    def told(call: Any) -> tuple[str, list[float]]:
        x = torch.ones(3, requires_grad=True)
        stream = io.StringIO()
        with contextlib.redirect_stdout(stream):
            call(x).sum().backward()
        return stream.getvalue(), x.grad.tolist() if x.grad is not None else []

    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend)
    try:
        return [told(compiled) for _ in range(2)] == [told(function) for _ in range(2)] and len(graphs) == 1
    except Exception:
        return False


def main() -> None:
    found = {"output": holds(plain), "in functions": holds(within), "switches": switches.install()}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
