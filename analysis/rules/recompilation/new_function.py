"""GM709: a function, closure or partial that is made anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from graphmend.analysis.interpreter.events import Event, Recompiles
from graphmend.analysis.rules.recompilation.varying_argument import ONE_KIND
from graphmend.analysis.rules.rule import Break, Context, Rule

if TYPE_CHECKING:
    from graphmend.analysis.driver.guards.variation import Variation


class NewFunction(Rule):
    """
    What it does:
        Finds lambdas, nested functions, `functools.partial`s, classes and modules that are compiled, or that compiled
        code is given, and that hold another value, have parameters of other sizes, or are another function or class in
        another call in sight.

    Why it breaks:
        It does not break the graph: TorchDynamo finds graphs by the code of a function, so a lambda that is made
        anew in a loop is compiled once (torch 2.13); but it guards on each variable around it (`power == 2`), on its
        defaults and on a partial's arguments (`fn.keywords['k'] == 2`). Another function as an argument is another
        graph.

    Example:
        for power in range(2, 6):
            f = torch.compile(lambda y: y**power)
            x = f(x)

    Use instead:
        f = torch.compile(lambda y, power: y**power)
        for power in torch.arange(2, 6):
            x = f(x, power)

    Mends:
        a 0-d tensor in the place of an int or float; a class, or what makes one, at the top of the file, where it needs
        nothing that stands around it

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.recompilation.html
    """

    code = "GM709"
    name = "new-function"
    message = "`{subject}` {varies}: compiled {again}"
    advice = "Compile one function outside of the loop, and pass what changes as a tensor."
    events = (Recompiles,)
    valid: ClassVar = (
        """
import torch

def calls():
    x = torch.ones(4)
    for i in range(3):
        f = torch.compile(lambda y: y * 2 + 1)
        x = f(x)
""",
        """
import functools
import torch

def scale(x, k):
    return x * k

fast = torch.compile(functools.partial(scale, k=3))

def calls():
    for i in range(3):
        fast(torch.ones(4))
""",
    )
    invalid: ClassVar = (
        """
import torch

def calls():
    x = torch.ones(4)
    for power in range(2, 5):
        f = torch.compile(lambda y: y**power + power)
        x = f(x)
""",
        """
import functools
import torch

def scale(x, k):
    return x * k

def calls():
    for k in range(2, 5):
        f = torch.compile(functools.partial(scale, k=k))
        f(torch.ones(4))
""",
        """
import torch

@torch.compile
def layer(x, act):
    return act(x * 2)

def calls():
    for act in (torch.relu, torch.tanh, torch.sigmoid):
        layer(torch.ones(4), act)
""",
        """
import torch

class Net(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = torch.nn.Linear(4, width)

    def forward(self, x):
        return self.fc(x).relu()

def calls():
    for width in (2, 4, 8):
        torch.compile(Net(width))(torch.ones(3, 4))
""",
        """
import collections
import torch

def moments(x):
    Moments = collections.namedtuple("Moments", "mean var")

    @torch.compile
    def compute(values):
        return Moments(values.mean(), values.var())

    return compute(x)

def calls():
    for i in range(3):
        moments(torch.ones(4))
""",
    )

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Recompiles)
        variation = event.variation
        made = any(step[0] in ("closure", "keyword", "default") for step in variation.path)
        other = variation.kind == "argument" and not (variation.number or variation.beside_number)
        if variation.write is not None and variation.write.traced:
            return None
        if variation.of_another_model:
            return Break(None, fill=_told(variation, _MODULES), effect="recompiles", advice=_ONE_MODULE)
        if not (made or other) or variation.kind in ("length", "keys") or variation.of_tensor:
            return None
        if variation.path[0][0] == "global":
            return None
        if made:
            return Break(None, fill=_told(variation, _MADE), effect="recompiles")
        advice = ONE_KIND if variation.of_kinds else _ONE_FUNCTION
        return Break(None, fill=_told(variation, _GIVEN), effect="recompiles", advice=advice)


#: what is said of the subject, by what varies: another function is compiled, it is called with another, or on another
_MADE = "is {before} in one `{function}` that is made and {after} in another"
_GIVEN = "is {before} in one call of `{function}` and {after} in another"
_MODULES = "is not the same in the modules of which `{function}` is compiled"
_ONE_FUNCTION = "Pass the same one in each call, or compile one function for each."
_ONE_MODULE = "Compile one module, or one function for each module."


def _told(variation: Variation, varies: str) -> dict[str, str]:
    filled = variation.filled()
    return {**filled, "varies": varies.format(**filled)}
