"""What torch says about itself, as data; one file for each minor version.

`load(version)` gives the facts of a torch version: what its callables return, which of them depend on values,
which ones Dynamo refuses, and how Dynamo explains its breaks. The files are written by `generator/generate.py` from
torch's own; `signatures.py` and `measured.py` hold what torch's files do not say. Names come in and facts go out:
nothing here knows syntax or values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from graphmend.analysis.torch_facts import members
from graphmend.analysis.torch_facts.measured import DEFAULT_ONLY, UNKNOWN_NUMBERS
from graphmend.analysis.torch_facts.overloads import Overload, Returns, join, parse
from graphmend.analysis.torch_facts.refusals import Refusals
from graphmend.analysis.torch_facts.signatures import SIGNATURES

__all__ = ["BreakReason", "Returns", "TorchFacts", "load", "versions"]

_FOLDER = Path(__file__).parent
_NOTHING: Final[frozenset[str]] = frozenset()

#: other spellings of a module or class, the user's spelling first
_ALIASES = {
    "torch._C": "torch",
    "torch._C._VariableFunctions": "torch",
    "torch._VF": "torch",
    "torch.functional": "torch",
    "torch.random": "torch",
    "torch.serialization": "torch",
    "torch._C._nn": "torch.nn.functional",
    "torch._C.TensorBase": "torch.Tensor",
    "torch._tensor.Tensor": "torch.Tensor",
    "torch.nn.Parameter": "torch.Tensor",
    "torch.nn.Buffer": "torch.Tensor",
    "torch.nn.parameter.Parameter": "torch.Tensor",
    "torch.nn.parameter.Buffer": "torch.Tensor",
    "torch.cuda.memory": "torch.cuda",
    "torch.cuda.random": "torch.cuda",
    "torch.distributed.distributed_c10d": "torch.distributed",
    "torch.nn.utils.clip_grad": "torch.nn.utils",
    "torch.utils.checkpoint": "torch.utils.checkpoint",
}
_LEGACY_TENSOR = re.compile(r"torch\.(cuda\.)?(Bool|Byte|Char|Short|Int|Long|Half|BFloat16|Float|Double)Tensor")


class BreakReason(NamedTuple):
    """An entry of Dynamo's own registry of graph breaks."""

    type: str
    explanation: str
    hints: tuple[str, ...]


class TorchFacts:
    """The facts of one minor version of torch.

    `exact` is False where the version asked for has no data file and another one's facts stand in. Functions are asked
    for by qualified name: `torch.max`, `torch.nn.functional.relu`; methods of tensors as `torch.Tensor.max`, without
    the receiver among the arguments; what calling a module gives as `torch.nn.Linear.forward`. A caller leaves out
    keywords whose value is constantly False or None: they select no overload.
    """

    def __init__(self, data: Mapping[str, Any], calls: Mapping[str, Any], minor: str, *, exact: bool) -> None:
        self.version: str = data["version"]
        self.minor = minor
        self.exact = exact
        self._functions: Mapping[str, Mapping[str, str]] = data["functions"]
        self._attributes: Mapping[str, str] = data["attributes"]
        self._keywords: dict[str, frozenset[str] | None] = {}
        self._parsed: dict[str, tuple[Overload, ...]] = {}
        self._refusals = Refusals(data["dynamo"], calls.get("refused", {}), calls.get("traced", ()), minor)
        self._forms: Mapping[str, tuple[str, str] | None] = calls.get("forms", {})
        self._breaks: dict[str, BreakReason] | None = None

    def knows(self, name: str) -> bool:
        """Whether the name is a function, method or module of torch that the data describes."""
        return bool(self.overloads(name))

    def overloads(self, name: str) -> tuple[Overload, ...]:
        """All ways to call a function; empty where it is not known."""
        found = self._parsed.get(name)
        if found is None:
            found = self._parsed[name] = self._look_up(canonical(name))
        return found

    def _look_up(self, name: str) -> tuple[Overload, ...]:
        owner, _, last = name.rpartition(".")
        if last == "forward" and owner.startswith("torch.nn."):
            owner, last = "torch.nn.modules", owner.rpartition(".")[2]
        by_hand = SIGNATURES.get(f"{owner}.{last}")
        text = by_hand[0] if by_hand is not None else self._functions.get(owner, {}).get(last)
        return () if text is None else parse(text)

    def matching(
        self,
        name: str,
        positional: int = 0,
        keywords: frozenset[str] = _NOTHING,
        tensors: Mapping[int | str, bool] | None = None,
    ) -> tuple[Overload, ...]:
        """The overloads that a call may mean.

        `positional` counts the positional arguments, `keywords` names the others, and `tensors` says of arguments, by
        position or keyword, whether they are tensors, as far as that is known (`torch.max(x, 1)` and `torch.max(x, y)`
        differ in nothing else). Where none fits, all of them.
        """
        overloads = self.overloads(name)
        if len(overloads) < 2:
            return overloads
        known = tensors or {}
        return tuple(o for o in overloads if o.accepts(positional, keywords, known)) or overloads

    def returns(
        self,
        name: str,
        positional: int = 0,
        keywords: frozenset[str] = _NOTHING,
        tensors: Mapping[int | str, bool] | None = None,
    ) -> Returns | None:
        """What a call gives; None where the function is not known."""
        overloads = self.matching(name, positional, keywords, tensors)
        return join([o.returns for o in overloads]) if overloads else None

    def attribute(self, name: str) -> Returns | None:
        """What an attribute of a tensor is: `shape`, `dtype`, `T`, `grad`."""
        text = self._attributes.get(name)
        return None if text is None else parse(f">{text}")[0].returns

    def parameters(self, name: str) -> tuple[str, ...] | None:
        """The parameters' names in order, keyword-only ones last; of several overloads the one with most of them."""
        overloads = self.overloads(name)
        if not overloads:
            return None
        longest = max(overloads, key=lambda o: len(o.positional) + len(o.keyword_only))
        return (*longest.positional, *longest.keyword_only)

    def unknown_keyword(self, name: str, keywords: Iterable[str]) -> str | None:
        """A keyword that no overload of a function takes, the first in the alphabet; None where all fit, or the
        function is not known so well."""
        if name not in self._keywords:
            self._keywords[name] = self._known_keywords(name)
        known = self._keywords[name]
        return None if known is None else min((k for k in keywords if k not in known), default=None)

    def _known_keywords(self, name: str) -> frozenset[str] | None:
        owner, _, last = canonical(name).rpartition(".")
        overloads = self.overloads(name) if owner in members.OWNERS and last not in members.OPEN else ()
        if not overloads or any(o.varkw for o in overloads):
            return None
        known = {p for o in overloads for p in (*o.positional, *o.keyword_only)}
        known.update(other for p in known & members.NUMPY_NAMES.keys() for other in members.NUMPY_NAMES[p])
        return members.COMMON | known

    def has_method(self, name: str) -> bool:
        """Whether tensors may have an attribute of this name."""
        known = bool(self.overloads(f"torch.Tensor.{name}")) or self.attribute(name) is not None
        return known or name.startswith("_") or name in members.METHODS

    def is_dynamic_shape(
        self,
        name: str,
        positional: int = 0,
        keywords: frozenset[str] = _NOTHING,
        tensors: Mapping[int | str, bool] | None = None,
    ) -> bool:
        """Whether the result's shape depends on values, for every overload that the call may mean."""
        return self._all("d", self.matching(name, positional, keywords, tensors))

    def is_data_dependent(
        self,
        name: str,
        positional: int = 0,
        keywords: frozenset[str] = _NOTHING,
        tensors: Mapping[int | str, bool] | None = None,
    ) -> bool:
        """Whether the result is a Python value that depends on a tensor's values (`torch.equal`, `Tensor.item`)."""
        return self._all("x", self.matching(name, positional, keywords, tensors))

    def is_pointwise(self, name: str) -> bool:
        """Whether every overload works element by element."""
        return self._all("p", self.overloads(name))

    def is_reduction(self, name: str) -> bool:
        """Whether some overload reduces over dimensions."""
        return any("r" in o.flags for o in self.overloads(name))

    def is_inplace(self, name: str) -> bool:
        """Whether some overload writes into its first argument."""
        return any("i" in o.flags or o.returns.kind == "self" for o in self.overloads(name))

    def is_random(self, name: str) -> bool:
        """Whether some overload draws random numbers."""
        return any("s" in o.flags for o in self.overloads(name))

    def is_view(self, name: str) -> bool:
        """Whether some overload's result may share memory with an argument."""
        return any("v" in o.flags for o in self.overloads(name))

    def _all(self, flag: str, overloads: tuple[Overload, ...]) -> bool:
        return bool(overloads) and all(flag in o.flags for o in overloads)

    def refusal(self, name: str, argument: str | None = None) -> str | None:
        """The id of the break that calling an external function makes; None where it traces, or nothing is known.

        `argument` is the kind of the first argument where known: "tensor", "module", "container", "class", "str" or
        "alone" (it is the only one); "input" says that the receiver is a tensor from outside the graph. Methods stand
        under their class: `logging.Logger.info`, `torch.Tensor.item`.
        Functions are meant, not what a class's `__init__` does, unless the class was measured.
        """
        return self._refusals.of(_measured_name(name), argument)[0]

    def refusal_reason(self, name: str, argument: str | None = None) -> str | None:
        """Why calling an external function ends the graph, in half a sentence."""
        return self._refusals.of(_measured_name(name), argument)[1]

    def form(self, name: str, newest: str | None = None) -> str | None:
        """The id of the break that a form makes which is no call; None where it is traced.

        `newest` is what the newest torch does. The names are those of `bench/versions/forms.py`.
        """
        found = self._forms.get(name, (newest, ""))
        return found[0] if found is not None else None

    def skips(self, package: str) -> bool:
        """Whether Dynamo traces into nothing of a top-level package, by its trace rules: `tqdm`, `pandas`."""
        return self._refusals.skips(package)

    def default_only(self, name: str) -> bool:
        """Whether the break of a call is gone under `fullgraph=True`, which switches the capture flags on."""
        return _measured_name(name) in _words(DEFAULT_ONLY)

    def is_captured(self, name: str, scalars: bool, shapes: bool) -> bool:
        """Whether a call that breaks by default stays in the graph with these capture flags."""
        if not (scalars or shapes) or not self.default_only(name):
            return False
        counterpart = self.overloads("torch." + name.rpartition(".")[2])  # NumPy's functions trace as torch's
        return shapes if any("d" in o.flags for o in counterpart) else scalars

    def unknown_number(self, name: str) -> str | None:
        """The type of a Python number that a call gives while tracing without its value: `random.uniform` is a "float".

        The call traces; a branch on the number does not.
        """
        return UNKNOWN_NUMBERS.get(name)

    def numpy_traces(self, name: str) -> bool:
        """Whether Dynamo traces a NumPy function as an operation on tensors; its arrays are tensors while tracing."""
        return self._refusals.has_numpy(name)

    def break_reason(self, gb_id: str) -> BreakReason | None:
        """Dynamo's own words about a break, by id: `GB0007`."""
        if self._breaks is None:
            entries = _read(f"breaks-{self.minor}.json")["breaks"]
            self._breaks = {key: BreakReason(type, text, tuple(hints)) for key, (type, text, hints) in entries.items()}
        return self._breaks.get(gb_id)


def canonical(name: str) -> str:
    """The name under which the data has a function: `torch.relu` for `torch._C._VariableFunctions.relu`."""
    owner, dot, last = name.rpartition(".")
    if owner in _ALIASES:
        owner = _ALIASES[owner]
    elif _LEGACY_TENSOR.fullmatch(owner):
        owner = "torch.Tensor"
    return owner + dot + last


@lru_cache(maxsize=4)
def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _measured_name(name: str) -> str:
    """The user's spelling: measured entries and trace rules know `torch.random.manual_seed` and the like by it."""
    return canonical(name) if name.startswith("torch.") and not name.startswith("torch.random.") else name


@lru_cache(maxsize=1)
def versions() -> tuple[str, ...]:
    """The minor versions that there is data for, oldest first."""
    found = [p.stem.removeprefix("torch-") for p in _FOLDER.glob("torch-*.json")]
    return tuple(sorted(found, key=_order))


@lru_cache(maxsize=4)
def load(version: str | None = None) -> TorchFacts:
    """The facts of a torch version, `2.13` or `2.13.0+cpu`; of the newest one for None.

    A version without a data file gets the nearest older one, or the oldest, and a text that is no version the newest
    one; `exact` says so.
    """
    known = versions()
    wanted = _order(version or "")
    if not wanted:
        return _load(known[-1], version is None)
    minor = next((v for v in reversed(known) if _order(v) <= wanted), known[0])
    return _load(minor, _order(minor) == wanted)


@lru_cache(maxsize=8)
def _load(minor: str, exact: bool) -> TorchFacts:
    calls = _read(f"calls-{minor}.json") if (_FOLDER / f"calls-{minor}.json").is_file() else {}
    return TorchFacts(_read(f"torch-{minor}.json"), calls, minor, exact=exact)


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", version)[:2])


def _read(name: str) -> Any:
    return json.loads((_FOLDER / name).read_text(encoding="utf-8"))
