"""The tables of torch's operations, held against the torch that is installed."""

from __future__ import annotations

import contextlib
import inspect
import math
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from graphmend.analysis.torch_facts import versions
from graphmend.transforms.legality.operations import aliases, derivatives, domains, flags
from graphmend.transforms.legality.operations import names as known

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
F = torch.nn.functional
PLACES = (torch.Tensor, torch, F, torch.special, torch.linalg, torch.fft, torch.random)

SAMPLES = {
    "bool": lambda: torch.tensor([True, False, True]),
    "uint8": lambda: torch.tensor([1, 2, 3], dtype=torch.uint8),
    "int": lambda: torch.tensor([1, 2, 3]),
    "float": lambda: torch.tensor([0.25, 0.5, 0.75]),
    "complex": lambda: torch.tensor([0.25 + 0j, 0.5 + 1j, 0.75 + 0j]),
}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def functions(name: str) -> list[Any]:
    return [f for place in PLACES if (f := getattr(place, name, None)) is not None]


TABLES = {
    "random": known.RANDOM, "elementwise": known.ELEMENTWISE, "arithmetic": known.ARITHMETIC, "tests": known.TESTS,
    "reductions": known.REDUCTIONS, "casts": known.CASTS, "losses": known.LOSSES, "warn": known.WARN_FOR_ONE,
    "input": aliases.MAY_BE_INPUT, "views": aliases.VIEWS, "new": aliases.NEW, "raises": {*domains.RAISES_FOR},
    "empty": domains.EMPTY, "same kind": domains.SAME_KIND, "floating": domains.FLOATING, "float": domains.FLOAT,
    "integer": domains.INTEGER, "summed": domains.SUMMED, "promotes": domains.PROMOTES, "cut": derivatives.CUT,
    "tensors only": domains.TENSORS_ONLY, "inplace": {*flags.INPLACE},
}  # fmt: skip


@pytest.mark.skipif(not torch.__version__.startswith(versions()[-1]), reason="an older torch has fewer")
@pytest.mark.parametrize("table", TABLES)
def test_names_exist(table: str) -> None:
    assert not sorted(n for n in TABLES[table] if not functions(n))


@pytest.mark.parametrize(
    "names",
    [
        {n.rpartition(".")[2] for n in known.LAYERS},
        domains.FLOAT_LAYERS,
        derivatives.PLAIN_LAYERS,
        aliases.LAYERS_MAY_BE_INPUT,
        aliases.LAYERS_VIEW,
        {*flags.LAYER_INPLACE, *flags.LAYER_MAX_NORM},
    ],
)
def test_layers_exist(names: set[str]) -> None:
    assert not [n for n in names if not hasattr(torch.nn, n)]


def positions(place: Any, flag: str, *, layers: bool) -> dict[str, int]:
    """Where the public callables of a module take a flag."""
    found = {}
    for name in dir(place):
        thing = getattr(place, name)
        is_layer = inspect.isclass(thing) and issubclass(thing, torch.nn.Module)
        if name.startswith("_") or name.endswith("_") or not callable(thing) or is_layer != layers:
            continue
        with contextlib.suppress(ValueError, TypeError):
            parameters = [p for p in inspect.signature(thing).parameters if p != "self"]
            if flag in parameters:
                found[name] = parameters.index(flag)
    return found


def test_flags_stand_where_the_tables_say() -> None:
    assert positions(F, "inplace", layers=False) == flags.INPLACE
    assert positions(torch.nn, "inplace", layers=True) == flags.LAYER_INPLACE
    assert positions(F, "max_norm", layers=False) == flags.MAX_NORM
    assert positions(torch.nn, "max_norm", layers=True) == flags.LAYER_MAX_NORM


def outcomes(name: str, kind: str) -> list[Any]:
    """What an operation gives for a tensor of a kind: results, and exceptions that are about its dtype."""
    found: list[Any] = []
    for function in functions(name):
        x = SAMPLES[kind]()
        arguments: tuple[tuple[Any, ...], ...] = ((), (x,), (0,), (x, x), (1, 0))
        results = []
        for more in arguments:
            with contextlib.suppress(TypeError, IndexError, ValueError):
                try:
                    results.append(function(x.clone(), *more))
                except (RuntimeError, NotImplementedError) as error:
                    results.append(error)
        found += results
    return found


#: they raise for two operands that are bool, not for one
_OF_TWO_BOOLS = ("floor_divide", "remainder", "fmod")


@pytest.mark.parametrize("kind", SAMPLES)
def test_the_kinds_for_which_operations_raise(kind: str) -> None:
    """An operation that raises for a kind in every way that was tried is in the table, and none that never does."""
    wrong = []
    for name, refused in domains.RAISES_FOR.items():
        tried = [r for r in outcomes(name, kind) if not (isinstance(r, Exception) and "dimension" in str(r).lower())]
        if not tried:
            continue
        if all(isinstance(r, Exception) for r in tried) and kind not in refused and name not in _OF_TWO_BOOLS:
            wrong.append((name, "raises"))
        if not any(isinstance(r, Exception) for r in tried) and kind in refused:
            wrong.append((name, "does not raise"))
    assert wrong == []


KIND_OF = {"torch.bool": "bool", "torch.uint8": "uint8"}


def kind_of(tensor: Any) -> str:
    if tensor.dtype in (torch.bool, torch.uint8):
        return KIND_OF[str(tensor.dtype)]
    return "float" if tensor.is_floating_point() else "complex" if tensor.is_complex() else "int"


def first_tensor(result: Any) -> Any:
    while isinstance(result, (tuple, list)) and result:
        result = result[0]
    return result if isinstance(result, torch.Tensor) else None


@pytest.mark.parametrize("kind", SAMPLES)
def test_kinds_of_results(kind: str) -> None:
    wrong = []
    expected = {
        **dict.fromkeys(domains.SAME_KIND, kind),
        **dict.fromkeys(domains.FLOATING, "complex" if kind == "complex" else "float"),
        **dict.fromkeys(domains.FLOAT, "float"),
        **dict.fromkeys(domains.INTEGER, "int"),
        **dict.fromkeys(domains.SUMMED, "int" if kind in ("bool", "uint8") else kind),
        **dict.fromkeys(known.TESTS, "bool"),
    }
    for name, wanted in expected.items():
        for function in (f for place in (torch.Tensor, torch, F) if (f := getattr(place, name, None)) is not None):
            for more in ((), (0,), (SAMPLES[kind](),)):
                try:
                    result = first_tensor(function(SAMPLES[kind](), *more))
                except Exception:
                    continue
                if result is not None and kind_of(result) != wanted:
                    wrong.append((name, kind_of(result), wanted))
    assert not sorted({*wrong})


def test_what_raises_for_nothing() -> None:
    empty = torch.zeros(0)
    for name in domains.EMPTY:
        more = {"kthvalue": (1,), "topk": (1,), "quantile": (0.5,), "nanquantile": (0.5,)}.get(name, ())
        with pytest.raises((RuntimeError, IndexError)):
            getattr(torch, name)(empty, *more)
    for name in known.REDUCTIONS - {"std", "var", "norm"}:
        getattr(torch, name)(empty)


def arguments() -> Iterator[tuple[Any, ...]]:
    yield from ((), (0,), (1,), (0.5,), (0, 1), ((1, 1),), (0, torch.tensor([0])), (torch.float32,))


@pytest.mark.parametrize("rank", range(4))
def test_memory(rank: int) -> None:
    """What is called new shares nothing with its input, and what is called a view or perhaps the input itself does so
    for some input, or is not tried here.
    """
    wrong = []
    for name in aliases.NEW:
        for function in (f for place in (torch.Tensor, torch) if (f := getattr(place, name, None)) is not None):
            for more in arguments():
                x = torch.rand([2, 3, 2][:rank]) + 0.5
                try:
                    results = function(x, *more)
                except Exception:
                    continue
                for result in results if isinstance(results, (tuple, list)) else [results]:
                    if not (isinstance(result, torch.Tensor) and result.numel() and result.layout == torch.strided):
                        continue
                    if result.untyped_storage().data_ptr() == x.untyped_storage().data_ptr():
                        wrong.append((name, more))
    assert not wrong


def test_nothing_passes_gradients_that_is_called_cut() -> None:
    wrong = []
    for name in derivatives.CUT - {"detach_"}:
        for function in functions(name):
            for more in arguments():
                x = (torch.rand(3) + 0.2).requires_grad_()
                with contextlib.suppress(Exception):
                    result = first_tensor(function(x, *more))
                    if result is not None and result.requires_grad:
                        wrong.append(name)
    assert not wrong


def test_mathematics_that_raises_for_no_float() -> None:
    floats = (0.0, -0.0, 1.0, -1.0, 0.5, 1e308, -1e308, 5e-324, math.inf, -math.inf, math.nan)
    for name in domains.MATH:
        function = getattr(math, name)
        for x in floats:
            try:
                function(x)
            except TypeError:
                for y in floats:
                    function(x, y)
