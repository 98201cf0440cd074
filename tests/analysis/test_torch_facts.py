"""The facts about torch: what the data files say, that they load, and that they come from torch's own files."""

from __future__ import annotations

import importlib.util
import os
import random
import time
from pathlib import Path

import pytest

from graphmend.analysis import torch_facts
from graphmend.analysis.torch_facts import Returns, load
from graphmend.analysis.torch_facts.generator import generate
from graphmend.analysis.torch_facts.measured_numpy import hands_out_number
from graphmend.analysis.torch_facts.overloads import parse

T = Returns("T")
INT = Returns("int")
VALUES_INDICES = Returns("tuple", (T, T), ("values", "indices"))
DATA = Path(torch_facts.__file__).parent


def call(text: str) -> tuple[int, frozenset[str]]:
    """`2 dim out`: two positional arguments, and two by keyword."""
    positional, *keywords = text.split()
    return int(positional), frozenset(keywords)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("torch.relu", "1", T),
        ("torch._C._VariableFunctions.relu", "1", T),
        ("torch.functional.einsum", "3", T),
        ("torch.max", "1", T),
        ("torch.max", "1 dim", VALUES_INDICES),
        ("torch.max", "1 dim keepdim", VALUES_INDICES),
        ("torch.max", "2", Returns("union", (T, VALUES_INDICES))),
        ("torch.topk", "2", VALUES_INDICES),
        ("torch.split", "2", Returns("L")),
        ("torch.where", "1", Returns("L")),
        ("torch.where", "3", T),
        ("torch.is_tensor", "1", Returns("bool")),
        ("torch.equal", "2", Returns("bool")),
        ("torch.get_default_dtype", "0", Returns("dtype")),
        ("torch.unique", "1", T),
        ("torch.unique", "1 return_counts", Returns("tuple", (T, T), ("output", "counts"))),
        ("torch.nonzero", "1", T),
        ("torch.nonzero", "1 as_tuple", Returns("L")),
        ("torch.std_mean", "1 dim", Returns("tuple", (T, T))),
        ("torch.linalg.qr", "1", Returns("tuple", (T, T), ("Q", "R"))),
        ("torch.fft.fft", "1", T),
        ("torch.special.erf", "1", T),
        ("torch.cuda.is_available", "0", Returns("bool")),
        ("torch.distributed.get_rank", "0", INT),
        ("torch.nn.functional.linear", "3", T),
        ("torch.nn.functional.max_pool2d", "2", T),
        ("torch.nn.functional.max_pool2d", "2 return_indices", Returns("tuple", (T, T))),
        ("torch.nn.Linear.forward", "1", T),
        ("torch.nn.modules.conv.Conv2d.forward", "1", T),
        ("torch.nn.MultiheadAttention.forward", "3", Returns("tuple", (T, Returns("union", (T, Returns("none")))))),
        ("torch.Tensor.size", "0", Returns("size")),
        ("torch.Tensor.size", "1", INT),
        ("torch.Tensor.item", "0", Returns("number")),
        ("torch.Tensor.dim", "0", INT),
        ("torch.Tensor.add_", "1", Returns("self")),
        ("torch.nn.Parameter.view", "2", T),
        ("torch.FloatTensor.view", "2", T),
        ("torch.Tensor.type", "0", Returns("str")),
        ("torch.Tensor.type", "1", T),
        ("torch.no_such_function", "1", None),
        ("json.dumps", "1", None),
    ],
)
def test_returns(name: str, arguments: str, expected: Returns | None) -> None:
    assert load("2.13").returns(name, *call(arguments)) == expected


def test_an_argument_known_to_be_a_tensor_selects_the_overload() -> None:
    facts = load("2.13")
    assert facts.returns("torch.max", 2, tensors={1: True}) == T
    assert facts.returns("torch.max", 2, tensors={1: False}) == VALUES_INDICES
    assert facts.is_dynamic_shape("torch.repeat_interleave", 2, tensors={1: True})
    assert not facts.is_dynamic_shape("torch.repeat_interleave", 2, tensors={1: False})
    assert not facts.is_dynamic_shape("torch.repeat_interleave", 2, frozenset({"output_size"}), {1: True})


@pytest.mark.parametrize(
    ("name", "arguments", "dynamic"),
    [
        ("torch.nonzero", "1", True),
        ("torch.Tensor.nonzero", "0", True),
        ("torch.masked_select", "2", True),
        ("torch.unique", "1", True),
        ("torch.Tensor.unique_consecutive", "0", True),
        ("torch.where", "1", True),
        ("torch.where", "3", False),
        ("torch.nn.functional.one_hot", "1", True),
        ("torch.nn.functional.one_hot", "2", False),
        ("torch.nonzero_static", "1 size", False),
        ("torch.sum", "1", False),
        ("no.such.function", "1", False),
    ],
)
def test_dynamic_shapes(name: str, arguments: str, dynamic: bool) -> None:
    assert load("2.13").is_dynamic_shape(name, *call(arguments)) is dynamic


def test_kinds_of_operations() -> None:
    facts = load("2.13")
    assert facts.is_data_dependent("torch.equal", 2)
    assert facts.is_data_dependent("torch.Tensor.item")
    assert not facts.is_data_dependent("torch.eq", 2)
    assert facts.is_pointwise("torch.add")
    assert facts.is_pointwise("torch.nn.functional.relu")
    assert not facts.is_pointwise("torch.matmul")
    assert not facts.is_pointwise("torch.max")
    assert facts.is_reduction("torch.Tensor.amax")
    assert facts.is_inplace("torch.Tensor.copy_")
    assert not facts.is_inplace("torch.Tensor.add")
    assert facts.is_random("torch.rand")
    assert facts.is_random("torch.nn.functional.dropout")
    assert not facts.is_random("torch.zeros")
    assert facts.is_view("torch.Tensor.view")
    assert facts.is_view("torch.Tensor.detach")
    assert not facts.is_view("torch.Tensor.clone")


def test_parameters_and_attributes() -> None:
    facts = load("2.13")
    assert facts.parameters("torch.max") == ("input", "dim", "keepdim", "out")
    assert facts.parameters("torch.Tensor.sum") == ("dim", "keepdim", "dtype")
    assert facts.parameters("no.such.function") is None
    assert facts.attribute("shape") == Returns("size")
    assert facts.attribute("T") == T
    assert facts.attribute("grad") == Returns("union", (T, Returns("none")))
    assert facts.attribute("no_such_attribute") is None


@pytest.mark.parametrize(
    ("name", "gb_id"),
    [
        ("time.time", "GB0007"),
        ("time.pthread_getcpuclockid", "GB0007"),
        ("random.random", "GB0007"),
        ("random.uniform", None),
        ("os.path.exists", "GB0007"),
        ("os.path.join", None),
        ("os.environ.get", None),
        ("math.sqrt", None),
        ("re.match", None),
        ("itertools.chain", None),
        ("builtins.print", "GB0059"),
        ("builtins.len", None),
        ("logging.Logger.info", "GB0291"),
        ("logging.info", "GB4841"),
        ("warnings.warn", "GB0007"),
        ("datetime.datetime.now", "GB0156"),
        ("decimal.Decimal", "GB0147"),
        ("tqdm.auto.trange", "GB0007"),
        ("pandas.read_csv", "GB0007"),
        ("pandas.DataFrame", None),
        ("numpy.apply_along_axis", "GB0294"),
        ("numpy.sum", None),
        ("torch.manual_seed", "GB0007"),
        ("torch.random.manual_seed", "GB0007"),
        ("torch.typename", "GB0007"),
        ("torch.result_type", "GB0208"),
        ("torch.is_floating_point", None),
        ("torch.compiler.is_compiling", None),
        ("torch.utils.checkpoint.checkpoint", None),
        ("torch.utils.data.default_collate", "GB0007"),
        ("torch.nn.LSTM.forward", "GB0014"),
        ("torch.nn.Linear.forward", None),
        ("torch.Tensor.backward", "GB0123"),
        ("torch.nn.Parameter.backward", "GB0123"),
        ("torch.relu", None),
        ("some.library.function", None),
    ],
)
def test_refusals(name: str, gb_id: str | None) -> None:
    assert load("2.13").refusal(name) == gb_id


def test_a_refusal_may_depend_on_the_argument() -> None:
    facts = load("2.13")
    assert facts.refusal("copy.deepcopy") is None
    assert facts.refusal("copy.deepcopy", "tensor") == "GB4198"
    assert facts.refusal("math.sqrt", "tensor") == "GB0033"
    assert facts.refusal("math.radians", "tensor") is None
    assert facts.refusal("torch.Tensor.requires_grad_", "input") == "GB0125"


def test_what_a_refusal_says_of_itself() -> None:
    facts = load("2.13")
    assert "C function" in (facts.refusal_reason("time.time") or "")
    assert facts.refusal_reason("os.path.join") is None
    assert facts.default_only("torch.nonzero")
    assert not facts.default_only("torch.allclose")
    assert facts.unknown_number("random.uniform") == "float"
    assert facts.unknown_number("random.random") is None
    assert hands_out_number("numpy.random.uniform", 2, ())
    assert not hands_out_number("numpy.random.uniform", 3, ())
    assert not hands_out_number("numpy.random.rand", 0, {"size"})
    assert facts.refusal("numpy.polynomial.legendre.leggauss") == "GB0007"
    assert facts.numpy_traces("numpy.linalg.norm")
    assert not facts.numpy_traces("numpy.apply_along_axis")


def test_the_registry_explains_a_break() -> None:
    reason = load("2.13").break_reason("GB0036")
    assert reason is not None
    assert reason.type == "Dynamic shape operator"
    assert "depends on input Tensor data" in reason.explanation
    assert any("capture_dynamic_output_shape_ops" in hint for hint in reason.hints)
    assert load("2.13").break_reason("GB9999999") is None


@pytest.mark.parametrize("minor", torch_facts.versions())
def test_every_data_file_loads_and_parses(minor: str) -> None:
    facts = load(minor)
    assert facts.exact
    assert facts.version.startswith(f"{minor}.")
    assert facts.returns("torch.relu", 1) == T
    assert facts.returns("torch.Tensor.item") == Returns("number")
    assert facts.refusal("torch.manual_seed") == "GB0007"
    assert facts.break_reason("GB0170") is not None
    for module, names in facts._functions.items():
        for name, text in names.items():
            assert parse(text), f"{module}.{name}"


def test_versions_without_data_get_the_nearest_older_one() -> None:
    newest, oldest = torch_facts.versions()[-1], torch_facts.versions()[0]
    assert load(None).minor == newest
    assert load(None).exact
    assert (load("2.13.0+cpu").minor, load("2.13.0+cpu").exact) == ("2.13", True)
    assert (load("99.1").minor, load("99.1").exact) == (newest, False)
    assert (load("1.0").minor, load("1.0").exact) == (oldest, False)


@pytest.mark.many
def test_the_generator_reproduces_the_data_from_an_installed_torch(tmp_path: Path) -> None:
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        pytest.skip("no torch here")
    tree = generate.Tree(Path(found.origin).parents[1])
    minor = ".".join(generate.version(tree).split(".")[:2])
    if generate.version(tree) != load(minor).version:
        pytest.skip(f"no data was made from torch {generate.version(tree)}")
    for path in generate.write(tree, tmp_path):
        assert path.read_bytes() == (DATA / path.name).read_bytes(), path.name


@pytest.mark.torch
@pytest.mark.parametrize(
    ("name", "expression"),
    [
        ("time.perf_counter", "time.perf_counter()"),
        ("random.uniform", "random.uniform(0.0, 1.0)"),
        ("random.gauss", "random.gauss(0.0, 1.0)"),
        ("os.path.isfile", "os.path.isfile('x')"),
        ("os.path.splitext", "os.path.splitext('a.b')"),
        ("torch.typename", "torch.typename(x)"),
        ("torch.result_type", "torch.result_type(x, 1)"),
        ("torch.promote_types", "torch.promote_types(x.dtype, x.dtype)"),
        ("torch.Tensor.storage_offset", "x.storage_offset()"),
        ("torch.Tensor.get_device", "x.get_device()"),
    ],
)
def test_dynamo_agrees(name: str, expression: str) -> None:
    torch = pytest.importorskip("torch")
    if not torch.__version__.startswith("2.13."):
        pytest.skip("measured on torch 2.13")
    namespace = {"torch": torch, "os": os, "random": random, "time": time}
    exec(f"def case(x):\n    y = x + 1\n    value = {expression}\n    return y * 2\n", namespace)
    compiled = torch.compile(namespace["case"], backend="eager", fullgraph=True)
    torch._dynamo.reset()
    try:
        compiled(torch.ones(2))
        traces = True
    except torch._dynamo.exc.Unsupported:
        traces = False
    assert traces is (load("2.13").refusal(name) is None)
