"""The functions of Python's `random` and of `numpy.random` that draw one number.

TorchDynamo 2.13 traces a few of Python's (`random.uniform`, `random.randint`), which it calls before the graph, and
none of NumPy's. It breaks the graph at the others, which draw as in plain Python.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Literal

Kind = Literal["int", "float"]


def _of(kind: Kind, module: str, names: str) -> dict[str, tuple[Kind, int]]:
    """The functions of a module, each with the number of its arguments before a size."""
    return {f"{module}.{name}": (kind, int(before)) for name, before in (each.split(":") for each in names.split())}


_NUMBERS: Final = {
    **_of(
        "float",
        "random",
        "betavariate:2 expovariate:1 gammavariate:2 gauss:2 lognormvariate:2 normalvariate:2 paretovariate:1 random:0 "
        "triangular:3 uniform:2 vonmisesvariate:2 weibullvariate:2",
    ),
    **_of("int", "random", "randint:2 randrange:3"),
    **_of(
        "float",
        "numpy.random",
        "beta:2 chisquare:1 exponential:1 f:2 gamma:2 gumbel:2 laplace:2 logistic:2 lognormal:2 noncentral_chisquare:2 "
        "noncentral_f:3 normal:2 pareto:1 power:1 rand:0 randn:0 random:0 random_sample:0 ranf:0 rayleigh:1 sample:0 "
        "standard_cauchy:0 standard_exponential:0 standard_gamma:1 standard_normal:0 standard_t:1 triangular:3 "
        "uniform:2 vonmises:2 wald:2 weibull:1",
    ),
    **_of(
        "int",
        "numpy.random",
        "binomial:2 geometric:1 hypergeometric:3 logseries:1 negative_binomial:2 poisson:1 randint:2 zipf:1",
    ),
}

NAMES: Final = frozenset(_NUMBERS)


def kind_drawn(name: str, arguments: int, keywords: Collection[str]) -> Kind | None:
    """The type of the one Python number that a call draws, given numbers; None where it draws none, or an array."""
    kind, before = _NUMBERS.get(name, (None, 0))
    sized = arguments > before or not {"size", "dtype"}.isdisjoint(keywords)
    return None if sized else kind
