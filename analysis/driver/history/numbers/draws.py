"""Numbers that driver code draws at random: another one each time."""

from __future__ import annotations

import math
from collections.abc import Callable as Function
from typing import TYPE_CHECKING, Any

from graphmend.analysis.driver.execution.objects import Object, Values, sequence
from graphmend.analysis.driver.guards.atoms import Drawn, Numbers, Tensor, only

if TYPE_CHECKING:
    from graphmend.analysis.driver.history.interface import Recorder

#: what draws, beside the functions of `random` and `numpy.random`
GENERATORS = frozenset({
    "random.Random", "random.SystemRandom", "numpy.random.default_rng", "numpy.random.Generator",
    "numpy.random.RandomState",
})  # fmt: skip
_SEEDS = frozenset({"random.seed", "numpy.random.seed", "torch.manual_seed", "torch.random.manual_seed"})
#: factories of torch, and what they fill a tensor with, from a number between 0 and 1
_TENSORS: dict[str, Function[..., float]] = {
    "rand": lambda f: f,
    "randn": lambda f: 2 * f - 1,
    "randint": lambda f, low, high=None: _whole(f, *((0, low) if high is None else (low, high))),
}
#: items that `choices` and `sample` pick
_MOST = 24


def _whole(f: float, low: float, high: float) -> int:
    """One of the whole numbers from `low` to `high`, the latter not included."""
    return _ranged(f, low, high)


def _around(f: float, mean: float = 0.0, deviation: float = 1.0) -> float:
    return mean + deviation * (2 * f - 1)


def _between(f: float, low: float = 0.0, high: float = 1.0, *_: float) -> float:
    return low + f * (high - low)


def _ranged(f: float, first: float, last: float | None = None, step: float = 1) -> int:
    row = range(int(first)) if last is None else range(int(first), int(last), int(step))
    return row[math.floor(f * len(row))]


#: what each function makes of a number between 0 and 1 and its own arguments
_OF_BOTH: dict[str, Function[..., float]] = {
    "random": lambda f: f, "uniform": _between, "triangular": _between,
}  # fmt: skip
_OF_PYTHON: dict[str, Function[..., float]] = {
    **_OF_BOTH,
    "randint": lambda f, low, high: _whole(f, low, high + 1), "randrange": _ranged, "gauss": _around,
    "normalvariate": _around, "betavariate": lambda f, a, b: f, "expovariate": lambda f, rate=1.0: f / rate,
    "getrandbits": lambda f, bits: _whole(f, 0, 2 ** min(int(bits), 32)),
}  # fmt: skip
_OF_NUMPY: dict[str, Function[..., float]] = {
    **_OF_BOTH,
    "rand": lambda f: f, "random_sample": lambda f: f, "randn": _around, "standard_normal": _around, "normal": _around,
    "beta": lambda f, a, b: f, "exponential": lambda f, scale=1.0: f * scale,
    "randint": lambda f, low, high=None: _whole(f, *((0, low) if high is None else (low, high))),
}  # fmt: skip


def drawn(m: Recorder, owner: str, name: str, arguments: list[Values], keywords: dict[str, Values]) -> Values | None:
    """What a call of a function of a module, or of a method of a generator, draws; None where it draws nothing, or an
    array."""
    if f"{owner}.{name}" in _SEEDS:
        m.draws = 0
        return None
    of_numpy = owner.startswith("numpy.")
    if owner not in GENERATORS and owner not in ("random", "numpy.random"):
        return None
    if not of_numpy and name in ("choice", "choices", "sample"):
        return _picked(m, name, arguments, keywords)
    if of_numpy and name == "integers":  # a scalar of NumPy's, of which TorchDynamo makes a tensor
        number = _number(m, _OF_NUMPY["randint"], arguments, keywords)
        return (Numbers((number,), scalar=True, drawn=True),) if number is not None else None
    function = (_OF_NUMPY if of_numpy else _OF_PYTHON).get(name)
    number = _number(m, function, arguments, keywords) if function is not None else None
    return (Drawn(number),) if number is not None else None


def fill(m: Recorder, name: str, made: Tensor, arguments: list[Values], keywords: dict[str, Values]) -> None:
    """Note the one number of a tensor that is drawn."""
    if name not in _TENSORS or made.shape not in ((), (1,)):
        return
    bounds = [values for values in arguments if only(values) is not ...] if name == "randint" else []
    named = {key: values for key, values in keywords.items() if key in ("low", "high")}
    number = _number(m, _TENSORS[name], bounds, named)
    if number is not None:
        made.numbers, made.drawn = (number,), True


def _number(
    m: Recorder, function: Function[..., float], arguments: list[Values], keywords: dict[str, Values]
) -> float | None:
    given: list[Any] = [only(values) for values in arguments]
    named: dict[str, Any] = {key: only(values) for key, values in keywords.items()}
    if not all(isinstance(one, (int, float)) for one in (*given, *named.values())):
        return None
    try:
        return function(_fraction(m), *given, **named)
    except (ArithmeticError, IndexError, TypeError, ValueError):  # sizes of an array, or not what it takes
        return None


def _picked(m: Recorder, name: str, arguments: list[Values], keywords: dict[str, Values]) -> Values | None:
    """Items of a sequence: `random.choice`, `choices` and `sample`."""
    one = arguments[0][0] if arguments and len(arguments[0]) == 1 else None
    if not isinstance(one, Object) or not one.items or one.rest:
        return None
    if name == "choice":
        return one.items[math.floor(_fraction(m) * len(one.items))]
    count = only(keywords["k"]) if "k" in keywords else only(arguments[1]) if len(arguments) > 1 else 1
    if not isinstance(count, int) or not 0 <= count <= _MOST:
        return None
    return (sequence([one.items[math.floor(_fraction(m) * len(one.items))] for _ in range(count)]),)


def _fraction(m: Recorder) -> float:
    """The next of numbers that are spread evenly between 0 and 1, whichever way they are cut off: van der Corput's."""
    m.draws += 1
    number, result, part = m.draws, 0.0, 0.5
    while number:
        number, digit = divmod(number, 2)
        result += digit * part
        part /= 2
    return result
