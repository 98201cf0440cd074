"""What functions and methods do besides computing, as far as their names say."""

from __future__ import annotations

from graphmend.transforms.legality.bodies.layers import Effect
from graphmend.transforms.legality.operations import names as known

SAYS = frozenset("debug info warning warning_once warn error critical exception log".split())
EMITS = frozenset({"graphmend.runtime.emit", "graphmend.runtime.emit_if"})
EFFECTS = {"print": Effect.SAYS, **dict.fromkeys(("setattr", "delattr", "exec", "eval"), Effect.STAYS)}
BUILTINS = frozenset(
    "len range enumerate zip reversed isinstance min max sum abs pow round tuple list dict set float int bool str any "
    "all sorted getattr hasattr type super callable divmod slice".split()
)
#: methods that change what they are called on
CHANGE = frozenset(
    "update append extend insert pop popitem remove clear setdefault add discard sort reverse copy_ register_buffer "
    "register_parameter add_module write put".split()
)
#: contexts that are left as they were entered
CONTEXTS = frozenset("torch.no_grad torch.enable_grad torch.autocast torch.amp.autocast torch.set_grad_enabled".split())
TENSOR_METHODS = (
    known.ELEMENTWISE | known.ARITHMETIC | known.TESTS | known.REDUCTIONS | known.CASTS | known.METHODS
) | frozenset("expand split chunk to view size item tolist get items keys values copy format lower upper".split())


def of_builtin(name: str) -> Effect:
    """What calling a builtin function does, and any other function by an empty name."""
    return Effect.NOTHING if name in BUILTINS else EFFECTS.get(name, Effect.UNKNOWN)


def may_change(method: str) -> bool:
    """Does a method change what it is called on, by its name: `add_`, `append`?"""
    return method in CHANGE or (method.endswith("_") and not method.endswith("__"))
