"""Numbers that driver code wrote down, in tensors and in arrays of NumPy."""

from __future__ import annotations

from graphmend.analysis.driver.execution.objects import Atom, Constant, Object, Values, sequence
from graphmend.analysis.driver.guards.atoms import Drawn, Numbers, Tensor, only
from graphmend.analysis.driver.history.numbers import arithmetic


def array(name: str, arguments: list[Values], keywords: dict[str, Values]) -> Numbers | None:
    """What a function of NumPy makes of numbers; None for any other function."""
    if name not in ("array", "asarray", "linspace", "arange") or not arguments:
        return None
    made = arithmetic.spaced(name, arguments, keywords) if "array" not in name else numbers_of(arguments[0])
    if made is None:
        return None
    return Numbers(made, scalar="array" in name and only(arguments[0]) is not ...)


def numbers_of(values: Values) -> tuple[int | float, ...] | None:
    """The numbers of a literal: one, or a flat sequence."""
    atom = values[0] if len(values) == 1 else None
    flat = [only(one) for one in atom.items or ()] if isinstance(atom, Object) and not atom.rest else [only(values)]
    found = tuple(one for one in flat if isinstance(one, (int, float)))
    return found if flat and len(found) == len(flat) else None


def of_number(owner: Tensor, number: int | float) -> Tensor:
    """One number out of a tensor, as a tensor."""
    made = Tensor((), owner.dtype, owner.gradient)
    made.numbers, made.drawn = (number,), owner.drawn
    return made


def held(one: Atom | None, *, item: bool = False) -> Values | None:
    """What `tolist()` gives where the numbers are known: one number, or a list; or what `item()` gives."""
    if not isinstance(one, (Tensor, Numbers)) or one.numbers is None:
        return None
    if isinstance(one, Tensor) and one.shape is None:
        return None
    found: list[Values] = [((Drawn if one.drawn else Constant)(number),) for number in one.numbers]
    is_one = one.scalar if isinstance(one, Numbers) else one.shape == () or (item and len(found) == 1)
    return found[0] if is_one else (sequence(found),)
