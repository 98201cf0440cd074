"""Where inputs come from, and that what was run is told."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from graphmend.dynamo.report import TargetReport
from graphmend.dynamo.requests import Declared, Request

from .conftest import Checks

pytestmark = pytest.mark.torch
Check = Callable[..., TargetReport]

NET = """
class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, 4)
    def forward(self, x):
        return self.layer(x)
"""


def test_configuration_comes_first(check: Check) -> None:
    found = check(
        NET + "def get_init_inputs():\n    return [3]\ndef get_inputs():\n    return [torch.ones(1, 3)]\n",
        declared=(Declared("model.py:Net", "Net(6).half()", "torch.ones(2, 6).half()"),),
    )
    assert (found.origin, found.arguments) == ("configuration", ("float16[2, 6]",))
    assert found.inputs == "Net(6).half()(torch.ones(2, 6).half())"


def test_a_declared_constructor_with_inputs_made_for_it(check: Check) -> None:
    found = check(NET, declared=(Declared("model.py:Net", "dict(width=5)"),))
    assert found.inputs == "Net(width=5)(torch.randn(2, 5))"


def test_a_method(check: Check) -> None:
    text = NET + "    def encode(self, x, scale):\n        return self.layer(x) * scale.item()\n"
    found = check(text, names=("Net.encode",))
    assert found.inputs.startswith("Net(16).encode(torch.randn(2, 16)")
    assert [b.function for b in found.breaks] == ["encode"]
    declared = (Declared("Net.encode", "3", "(torch.ones(1, 3), torch.ones(()))"),)
    assert check(text, declared=declared).inputs == "Net(3).encode(torch.ones(1, 3), torch.ones(()))"


def test_the_pair_of_functions(check: Check) -> None:
    found = check(NET + "def get_init_inputs():\n    return [3]\ndef get_inputs():\n    return [torch.ones(1, 3)]\n")
    assert (found.origin, found.arguments) == ("get_inputs()", ("float32[1, 3]",))


def test_a_comment_above_the_class(check: Check) -> None:
    found = check("# graphmend: example Net(5)(torch.zeros(7, 5))" + NET)
    assert (found.origin, found.arguments) == ("comment", ("float32[7, 5]",))


@pytest.mark.parametrize(
    ("text", "inputs"),
    [
        (NET, "Net(16)(torch.randn(2, 16))"),
        (
            """
            from dataclasses import dataclass
            @dataclass
            class Config:
                vocab_size: int = 50000
                n_embd: int = 768
            class Model(nn.Module):
                def __init__(self, config):
                    super().__init__()
                    self.embed = nn.Embedding(config.vocab_size, config.n_embd)
                def forward(self, tokens):
                    b, t = tokens.shape
                    return self.embed(tokens).view(b, t, -1)
            """,
            "Model(Config(vocab_size=128, n_embd=32))(torch.randint(0, 128, (2, 5)))",
        ),
        (
            """
            class Image(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.conv = nn.Conv2d(1, 4, 3)
                    self.out = nn.Linear(4 * 26 * 26, 10)
                def forward(self, image):
                    return self.out(self.conv(image).flatten(1))
            """,
            "Image()(torch.randn(2, 1, 28, 28))",
        ),
        (
            """
            class Block(nn.Module):
                def __init__(self, dim: int, heads: int, dropout: float):
                    super().__init__()
                    self.norm = nn.LayerNorm(dim)
                    self.attention = nn.MultiheadAttention(dim, heads, dropout, batch_first=True)
                def forward(self, x, mask):
                    b, t, d = x.shape
                    x = self.norm(x)
                    return self.attention(x, x, x, key_padding_mask=~mask)[0]
            """,
            "Block(16, 2, 0.1)(torch.randn(2, 5, 16), torch.ones(2, 5, dtype=torch.bool))",
        ),
        (
            """
            class Tagger(nn.Module):
                def __init__(self, vocab_size, hidden):
                    super().__init__()
                    self.embed = nn.Embedding(vocab_size, hidden)
                    self.rnn = nn.GRU(hidden, hidden, batch_first=True)
                def forward(self, text, lengths, state):
                    x = nn.utils.rnn.pack_padded_sequence(
                        self.embed(text), lengths, batch_first=True, enforce_sorted=False
                    )
                    return self.rnn(x, state)[1]
            """,
            "Tagger(128, 16)(torch.randint(0, 128, (2, 5)), torch.randint(1, 6, (2,)), torch.randn(1, 2, 16))",
        ),
        (
            """
            class Batch(nn.Module):
                def __init__(self, cfg: dict):
                    super().__init__()
                    self.embed = nn.Embedding(cfg["vocab_size"], cfg["dim"])
                    self.layer = nn.Linear(4, cfg["dim"])
                    self.act = nn.GELU() if cfg.get("gelu") else nn.ReLU()
                def forward(self, batch):
                    x = self.embed(batch["tokens"]) + self.layer(batch["features"])[:, None]
                    return self.act(x * batch["mask"] if "mask" in batch else x)
            """,
            "Batch({'vocab_size': 128, 'dim': 16})"
            "({'tokens': torch.randint(0, 128, (2, 5)), 'features': torch.randn(2, 4)})",
        ),
        (
            """
            from typing import NamedTuple, Optional
            class Inputs(NamedTuple):
                tokens: torch.Tensor
                mask: Optional[torch.Tensor] = None
            class Named(nn.Module):
                def __init__(self, args):
                    super().__init__()
                    self.embed = nn.Embedding(args.vocab_size, args.dim)
                def forward(self, *, inputs: Inputs):
                    return self.embed(inputs.tokens)
            """,
            "Named(SimpleNamespace(vocab_size=128, dim=16))(inputs=Inputs(tokens=torch.randint(0, 128, (2, 5))))",
        ),
        (
            """
            class Part(nn.Module):
                def __init__(self, planes, stride):
                    super().__init__()
                    self.conv = nn.Conv1d(planes, planes, 3, stride)
                def forward(self, x):
                    return self.conv(x)
            class Points(nn.Module):
                def __init__(self, block, depths):
                    super().__init__()
                    self.parts = nn.ModuleList([block(3, 1) for _ in range(depths[0])])
                def forward(self, points):
                    x = points.transpose(1, 2)
                    for part in self.parts:
                        x = part(x)
                    return x
            """,
            "Points(Part, [2, 2])(torch.randn(2, 32, 3))",
        ),
        (
            """
            class Pixels(nn.Module):
                def __init__(self, image_size=48, heads: list[int] = [2]):
                    super().__init__()
                    self.image_size = image_size
                    self.conv = nn.Conv2d(3, 4, 8, 8)
                    self.text = nn.Embedding(100, 4)
                def forward(self, pixels=None, words=None):
                    if words is None:
                        raise ValueError("You have to specify words")
                    assert pixels.shape[-1] == self.image_size
                    return self.conv(pixels).flatten(2).sum() + self.text(words)
            """,
            "Pixels()(pixels=torch.randn(2, 3, 48, 48), words=torch.randint(0, 100, (2, 5)))",
        ),
        (
            """
            class Part(nn.Module):
                def __init__(self, width):
                    super().__init__()
                    self.layer = nn.Linear(width, 3)
                def forward(self, x):
                    return self.layer(x)
            class Whole(nn.Module):
                def __init__(self, part, device):
                    super().__init__()
                    self.part = part
                    self.device = device
                def forward(self, x, start):
                    if x.shape[1] != 4:
                        raise ValueError("four rows")
                    return self.part(x.to(self.device))[:, start:]
            """,
            "Whole(Part(16), torch.device('cpu'))(torch.randn(2, 4, 16), 2)",
        ),
        (
            """
            class Levels(nn.Module):
                def __init__(self, channels, groups):
                    super().__init__()
                    self.norm = nn.GroupNorm(8, channels)
                    self.heads = nn.ModuleList([nn.Conv2d(c, 2, 1) for c in (4, channels)])
                def forward(self, features):
                    for i in range(2):
                        features[i] = self.heads[i](features[i])
                    return self.norm(torch.cat([f.flatten(1)[:, :1] for f in features]).expand(-1, 32))
            """,
            "Levels(32, 2)([torch.randn(2, 4, 32, 32), torch.randn(2, 32, 32, 32)])",
        ),
        (
            """
            class Joined(nn.Module):
                def __init__(self, classes):
                    super().__init__()
                    self.labels = nn.Embedding(classes, 4)
                    self.net = nn.ConvTranspose2d(8 + 4, 3, 4)
                def forward(self, noise, which):
                    c = self.labels(which).unsqueeze(2).unsqueeze(3)
                    return self.net(torch.cat([noise, c], 1))
            """,
            "Joined(4)(torch.randn(2, 8, 1, 1), torch.randint(0, 4, (2,)))",
        ),
        ("def f(a, b, scale: float, flag: bool):\n    return (a @ b.T) * scale\n", None),
    ],
)
def test_inputs_are_made_from_what_the_code_says(check: Check, text: str, inputs: str | None) -> None:
    found = check(text, names=(inputs.partition("(")[0] if inputs else "f",))
    assert found.origin == "synthesised"
    if inputs is not None:
        assert found.inputs == inputs


def test_a_repair_passes_over_a_side_of_no_length() -> None:
    pytest.importorskip("torch")
    from graphmend.dynamo.worker.inputs.feedback import repairs

    error = RuntimeError("mat1 and mat2 shapes cannot be multiplied (2x4 and 6x50)")
    given = {"x": repairs.Tensor("float", (2, 0, 4)), "y": repairs.Tensor("float", (2, 1, 4))}
    made = list(repairs.guesses(error, given))
    assert (2, 1, 6) in [one["y"].shape for one in made]
    assert {one["x"].shape[:2] for one in made} == {(2, 0)}


def test_a_name_that_says_nothing_is_no_class() -> None:
    torch = pytest.importorskip("torch")
    from graphmend.dynamo.worker.inputs import parts

    module = ModuleType("net")
    for name in ("Encoder", "Net"):
        setattr(module, name, type(name, (torch.nn.Module,), {"__module__": "net"}))
    assert parts.class_of("encoder_model", module.Net, module) is module.Encoder
    assert parts.class_of("_model", module.Net, module) is None


def test_no_inputs_says_what_to_write(checks: Checks, write: Callable[..., Path]) -> None:
    path = write("class Net(nn.Module):\n    def forward(self, reader):\n        return reader.next_batch()\n")
    (target,) = checks(path).targets
    assert target.status == "no-inputs"
    assert "# graphmend: example Net(...)" in str(target.problem)
    assert "next_batch" in str(target.problem)


def test_where_nothing_fits_the_try_that_got_farthest_is_told(checks: Checks, write: Callable[..., Path]) -> None:
    text = """
    @torch.compile
    def f(x):
        if x.dim() != 3:
            raise ValueError("another rank")
        x = x + 1
        x = x * 2
        raise RuntimeError("of no use")
    """
    (target,) = checks(write(textwrap.dedent(text))).targets
    assert "what got farthest of " in str(target.problem)
    assert "RuntimeError: of no use (model.py:" in str(target.problem)


def test_inputs_that_make_the_model_raise(checks: Checks, write: Callable[..., Path]) -> None:
    path = write("# graphmend: example f(torch.ones(2, 3))\n@torch.compile\ndef f(x):\n    return x @ x\n")
    (target,) = checks(path).targets
    assert target.problem is not None
    assert target.problem.startswith("f does not run on its declared inputs (comment)")
    assert "model.py:6" in target.problem


@pytest.mark.parametrize(
    ("target", "concerns"),
    [
        ("Net", True),
        ("model.py:Net", True),
        ("src/pkg/model.py:Net", True),
        ("./pkg/model.py:Net", True),
        ("pkg.model:Net", True),
        ("other.py:Net", False),
        ("del.py:Net", False),
        ("other.model:Net", False),
    ],
)
def test_entries_are_matched_with_files(target: str, concerns: bool) -> None:
    assert Request(path="/home/src/pkg/model.py").concerns(Declared(target)) is concerns


def test_a_smaller_batch_where_memory_is_short(check: Check) -> None:
    found = check(
        """
        # graphmend: example f(torch.ones(8, 3))
        @torch.compile
        def f(x):
            if x.shape[0] > 2:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return x
        """
    )
    assert found.arguments == ("float32[2, 3]",)
    assert found.notes == ("batches are cut to 1/4: out of memory on cpu",)


def test_less_of_everything_where_memory_is_short(write: Callable[..., Path]) -> None:
    """Half the batch, again and again; then the next device, and the whole batch there."""
    torch = pytest.importorskip("torch")
    from graphmend.dynamo.worker import discover
    from graphmend.dynamo.worker.inputs import examples
    from graphmend.dynamo.worker.runs import fitting

    path = write("")
    failures = iter(range(5))  # one for each part of a batch: 1, 1/2, ... 1/16

    def forward(x: object) -> object:
        if next(failures, None) is not None:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return x

    target = discover.Target("forward", "function", forward)
    budget = fitting.MemoryBudget(["cpu:0", "cpu"])  # stand for a device whose memory is full, and the next one
    finder = fitting.Finder(target, lambda file: file == str(path), budget, float("inf"))
    example = examples.Example("comment", "forward(...)", lambda: forward, lambda: [((torch.ones(32),), {})])
    fit, runs = finder.find(lambda: [example])
    assert (fit.device, fit.parts, runs[0].raised) == ("cpu", 1, None)
    assert runs[0].value.shape == (32,)
    assert budget.said() == ["on cpu: cpu:0 ran out of memory"]
    failures = iter(range(100))
    finder = fitting.Finder(target, lambda file: False, fitting.MemoryBudget(["cpu"]), float("inf"))
    with pytest.raises(examples.Unusable, match="does not fit into memory"):
        finder.find(lambda: [example])


def test_memory_that_is_short_when_compiled(check: Check) -> None:
    """The eager run, which is traced by line, fitted: the check begins again with less."""
    found = check(
        """
        import sys
        @torch.compiler.disable
        def needs_memory(x):
            if sys.gettrace() is None and x.shape[0] > 4:
                raise torch.OutOfMemoryError("CUDA out of memory")
        # graphmend: example f(torch.ones(8, 3))
        @torch.compile
        def f(x):
            needs_memory(x)
            return x
        """
    )
    assert found.arguments == ("float32[4, 3]",)
    assert found.notes == ("batches are cut to 1/2: out of memory on cpu",)
    assert len(found.breaks) == 1


def test_each_run_begins_with_the_same_state(check: Check) -> None:
    """An input with a NaN spoils the statistics of a batch norm for its own run only."""
    found = check(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.BatchNorm1d(4)
            def forward(self, x):
                y = self.norm(x)
                if self.norm.running_mean.isnan().any():
                    y = y * 0
                return y
        """
    )
    assert found.runs[0].raised is None
    assert [b.span.line for b in found.breaks] == [10]
    assert len(found.runs) > 1


CONFIGURED = """
class Part(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads = config.n_head
        self.layer = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
    def forward(self, x):
        b, t, c = x.size()
        return self.layer(x).view(b, t, self.heads, c // self.heads).sum(2)

class Net(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.tokens = nn.Embedding(config.vocab_size, config.n_embd)
        self.parts = nn.ModuleList([Part(config) for _ in range(config.n_layer)])
    def forward(self, idx):
        x = self.tokens(idx)
        if self.config.debug:
            print(x)
        return self.parts[0](x)
"""
SETTINGS = """
from dataclasses import dataclass

@dataclass
class NetConfig:
    vocab_size: int = 50304
    n_layer: int = 12
    n_head: int = 12
    n_embd: int = 768
    bias: bool = True
    debug: bool = False

@dataclass
class OtherConfig:
    width: int = 3
"""


def test_a_configuration_that_stands_in_another_file(checks: Checks, write: Callable[..., Path]) -> None:
    path = write(CONFIGURED)
    (path.parent / "settings.py").write_text(SETTINGS)
    (path.parent / "loud_config.py").write_text(SETTINGS + "raise SystemExit(NetConfig().vocab_size)\n")
    (target,) = checks(path, names=("Net",), device="cpu").targets
    assert target.status == "checked", target.problem
    assert target.inputs.startswith("Net(NetConfig(vocab_size=128, n_layer=2, n_head=2, n_embd=32))(")
    (path.parent / "settings.py").write_text(SETTINGS.replace("NetConfig", "NetOptions"))
    (target,) = checks(path, names=("Net",), device="cpu").targets
    assert target.inputs.startswith("Net(NetOptions(")
    (path.parent / "settings.py").write_text(SETTINGS)
    (target,) = checks(path, names=("Net",), device="cpu").targets
    made = target.inputs
    write(CONFIGURED.replace("class Net(", f"# graphmend: example {made}\nclass Net("))
    (target,) = checks(path, names=("Net",), device="cpu").targets
    assert (target.origin, target.inputs) == ("comment", made), target.problem


def test_without_a_class_a_configuration_has_what_the_file_reads_of_it(
    checks: Checks, write: Callable[..., Path]
) -> None:
    path = write(CONFIGURED)
    (target,) = checks(path, names=("Net",), device="cpu").targets
    assert target.status == "checked", target.problem
    assert "Net(SimpleNamespace(" in target.inputs
    assert "n_head=2" in target.inputs
