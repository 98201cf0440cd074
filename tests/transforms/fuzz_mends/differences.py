"""What an unsafe mend may change: the words of mends cover kinds of difference as they do for `graphmend verify`."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from graphmend.dynamo.verdict import KINDS
from graphmend.transforms.fix import Fix

#: what `judge` sees, as `section.what` or `what`, and the kind of difference that it is
_SEEN = {
    "rng": "random",
    "stdout": "output-text",
    "stderr": "output-text",
    "logs": "output-text",
    "warnings": "output-text",
    "text": "output-text",
    "raised": "exception",
    "rounding": "rounding",
    "dtype": "dtype",
    "type": "dtype",
    "kind": "dtype",
    "device": "device",
    "shape": "shape",
    "stride": "strides",
    "alias": "aliasing",
    "requires_grad": "requires-grad",
    "leaf": "aliasing",  # what is no leaf any more is a copy of one
}
#: what any difference in a section is
_SECTIONS = {"grads": "gradients", "inputs": "argument-state", "state": "state"}


#: what code raises that does not fit the values it gets, and what a mend says that may have it do so
_OF_CODE = tuple(
    f"raised {name} instead of nothing" for name in ("TypeError", "AttributeError", "NameError", "UnboundLocalError")
)
_IN_VAIN = ("is evaluated on both sides", "is taken for a tensor")


def unnamed(observed: Iterable[str], fixes: Iterable[Fix], *, shared: bool = False) -> list[str]:
    """The observed differences that no mend names; `shared`: of calls whose inputs share memory with each other."""
    seen = list(observed)
    named = [difference for fix in fixes for difference in fix.differences]
    names = {difference.kind for difference in named}
    given = KINDS["other-inputs"] if shared else frozenset()
    in_vain = any(says in difference.says for difference in named for says in _IN_VAIN)
    return [
        what
        for what in seen
        if names.isdisjoint(words(what, seen) | given) or (what.startswith(_OF_CODE) and not in_vain)
    ]


def words(what: str, seen: Collection[str]) -> frozenset[str]:
    """The words of which one must be among those of a mend. Other values are covered by none, but where random numbers
    are drawn otherwise, or may be and an exception hides that."""
    section, _, field = what.partition(" ")[0].rpartition(".")
    covering = KINDS[_SECTIONS.get(section, "value")] | KINDS[_SEEN.get(field, "value")]
    if section == "grads" and field == "kind":
        covering |= KINDS["zero-gradients"]
    promoted = any(other.partition(" ")[0].endswith(".dtype") for other in seen)
    if field == "promoted" or (promoted and field in ("nan", "alias", "beyond")):
        covering |= KINDS["dtype"]  # another dtype wraps and overflows, writes NaN and shares memory otherwise
    if what == "warnings":  # torch warns of some operands as it refuses others
        covering |= KINDS["exception"] | (KINDS["gradients"] if "grads.raised" in seen else frozenset())
    if what.startswith("raised nothing") or what.endswith("for its dtypes"):  # one dtype may be refused, another not
        covering |= KINDS["dtype"]
    if what.endswith("before an exception"):  # which comes at another time
        covering |= KINDS["exception"]
    if field == "leaf" and f"{section}.requires_grad" in seen:  # a leaf is what has no history of gradients
        covering |= KINDS["requires-grad"]
    if field == "nan" or (field == "alias" and f"{section}.nan" in seen):
        covering |= {"nan"}  # other values, or other elements of a tensor, where a NaN is among them
    if field == "rounding":  # so do whole numbers beyond those that a double holds, and a dtype that is not seen itself
        covering |= {"overflow", *KINDS["dtype"]}
    if field == "beyond":  # where numbers are met that a dtype does not hold
        covering |= {"overflow"}
    if field == "stride" and any(other.startswith(f"{section}.shape") for other in seen):
        covering |= KINDS["shape"]  # another shape has other strides
    if section == "state" or what == "failed":  # what other code gets from the functions that were mended
        covering |= KINDS["other-inputs"]
    drawn = any(other.partition(" ")[0] == "rng" or " instead of " in other for other in seen)
    return covering | (KINDS["random"] if drawn else frozenset())
