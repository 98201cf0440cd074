"""The inputs of a program: usual ones for both sides of its branches, and odd ones.

An input is the text of a tuple, so that it can be shown, made again in another process, and left out.
"""

from __future__ import annotations

from fuzz_mends.grammar import Writer

_LINE = [
    "torch.tensor([1.0, -2.0, 3.0, 0.5])",
    "torch.tensor([-1.5, -0.25, -3.0, 0.1])",
    "torch.tensor([0.3, 0.7, 0.1, 1.9])",
    "torch.randn(4)",
    "-torch.rand(4) - 0.1",
    "torch.rand(4) + 0.1",
]
_TABLE = [
    "torch.randn(3, 4)",
    "-torch.rand(3, 4) - 0.1",
    "torch.rand(3, 4) + 0.1",
    "torch.tensor([[1.0, -2.0, 3.0, 0.5], [0.0, 4.0, -1.0, 2.0]])",
    "torch.randn(1, 4)",
]
#: what may become of a usual input; `{}` is its text
_ODD = [
    "{}.double()",
    "{}.half()",
    "{}.long()",
    "({} * 10).long()",
    "({} > 0)",
    "({}.abs() * 9).to(torch.uint8)",
    "({} * 3).int()",
    "{}.bfloat16()",
    "{}.zero_()",
    "{}.mul_(float('nan'))",
    "{}.div_(0)",
    "{}.masked_fill_({}.sign() > 0, float('inf'))",
    "{}[:0]",
    "{}[:1]",
    "{}[:1].expand(4, *[-1] * ({}.dim() - 1))",
    "{}.t()",
    "torch.stack([{}, {}], -1)[..., 0]",
    "{}.requires_grad_()",
    "{}.requires_grad_()",
    "{}.double().requires_grad_()",
    "({}.requires_grad_() * 1)",
    "{}.sum()",
    "{}.mul_(1e30)",
    "-{}.mul_(0.0)",
]
_WHOLE = [
    "torch.tensor(2.0)",
    "torch.tensor(-1)",
    "torch.tensor([2**24 + 1, 3, -2**25, 7])",
    "torch.randn(1000)",
    "torch.randn(300).half() * 100",
    "torch.tensor([True, False])",
    "torch.zeros(0)",
    "torch.tensor([float('nan'), 1.0, float('inf'), -0.0])",
    "torch.full((4,), 300.0).half()",
    "torch.arange(4)",
    "torch.randn(2, 3, 4)",
    "torch.complex(torch.ones(4), torch.ones(4))",
]


def rows(writer: Writer, parameters: list[tuple[str, str]], count: int = 5) -> list[str]:
    """The texts of tuples for parameters, given as names and kinds."""
    usual = _TABLE if "rank2" in writer.features else _LINE
    made = []
    for number in range(count):
        x = usual[number % 3] if number < 2 else writer.one(usual)
        if number >= 2 and writer.maybe(0.85):
            odd = writer.one(_ODD)
            x = (
                odd.replace("{}", x if x.startswith("torch") and " " not in x.partition(")")[2] else f"({x})")
                if writer.maybe(0.75)
                else writer.one(_WHOLE)
            )
        elif number == 1 and writer.maybe(0.3):
            x = f"({x}).requires_grad_()"
        made.append(_row(writer, x, parameters, usual, number))
    return made


def _row(writer: Writer, x: str, parameters: list[tuple[str, str]], usual: list[str], number: int) -> str:
    values = []
    for name, kind in parameters:
        match kind:
            case "tensor" if name == "x":
                values.append("a")
            case "tensor":
                values.append(
                    writer.weighted(
                        [
                            (6, "torch.randn_like(a) if a.is_floating_point() else a + a"),
                            (2, "a.clone()"),
                            (2, writer.one(usual)),
                            (1, "a"),
                            (1, "a.detach()"),
                            (1, "a.view_as(a)"),
                            (1, "torch.ones(())"),
                            (1, "torch.ones_like(a)"),
                            (1, writer.one(_WHOLE)),
                        ]
                    )
                )
            case "mask":
                values.append(
                    writer.weighted(
                        [
                            (6, "(a > 0)" if number else "(a == a)"),
                            (2, "torch.zeros(a.shape, dtype=torch.bool)"),
                            (1, "(a > 0).to(torch.uint8)"),
                            (1, "(a > 0).long()"),
                            (1, "(a > 0)[:1]"),
                        ]
                    )
                )
            case "index":
                values.append(
                    writer.one(["torch.tensor(1)", "torch.tensor(0)", "torch.tensor([1])", "torch.tensor(-1)"])
                )
            case "count":
                values.append(writer.one(["0", "1", "2", "3"]))
            case "flag":
                values.append(writer.one(["True", "False"]))
            case "number":
                values.append(writer.one(["0.5", "2.0", "0.0", "-1.0"]))
    return f"(lambda a: ({', '.join(values)},))({x})" if len(values) > 1 else f"({x},)"
