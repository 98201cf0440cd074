"""The judge of random programs sees each kind of difference."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from fuzz_mends import judge  # noqa: E402
from fuzz_mends.differences import unnamed  # noqa: E402
from fuzz_mends.observe import observed, observed_nudged  # noqa: E402
from fuzz_mends.verdict import kept_names  # noqa: E402

from graphmend.transforms.fix import DIFFERENCES, Difference  # noqa: E402

pytestmark = pytest.mark.torch

HEAD = """\
import collections, logging, random, warnings
import numpy as np
import torch

SEEN: list = []
KEPT = {1}
LAST = collections.deque([1])
ARRAY = np.ones(2)
net = torch.nn.Linear(2, 2)
net.last = 0


def case(x):
"""

PAIRS = [
    ("return x * 2", "return x * 3", {"value.data"}),
    ("return x * 0.1", "return x * 0.1000001", {"value.rounding"}),
    ("return torch.arange(1000) * 0.1", "return torch.arange(1000) * 0.1000001", {"value.rounding"}),
    ("return torch.arange(1000) * 0.1", "return torch.arange(1000) * 0.1001", {"value.data"}),
    ("return x * 2", "return x.double() * 2", {"value.dtype"}),
    ("return x * 2", "return x.sum() * 2", {"value.shape", "value.stride"}),
    ("return x[None] * torch.ones(2, 1)", "return (x[:, None] * torch.ones(2)).t()", {"value.stride"}),
    ("return x", "return x.clone()", {"value.alias"}),
    ("return x[:1] * 0 + 1, x[:1]", "return x[:1] * 0 + 1, x[1:] - 1", {"value.alias"}),
    ("return x + 1", "KEPT.add(2)\n    return x + 1", {"state.kind"}),
    ("return x + 1", "LAST.append(2)\n    return x + 1", {"state.kind"}),
    ("return x + 1", "ARRAY[0] = 2\n    return x + 1", {"state.kind"}),
    ("return x + 1", "np.random.rand()\n    return x + 1", {"rng"}),
    ("return x + 1", "torch.set_grad_enabled(False)\n    return x + 1", {"modes"}),
    ("return net(x)", "return net(x).detach().requires_grad_()", {"grads.kind", "value.leaf"}),
    ("return x[:1], x[:1]", "return (x[:1],) * 2", {"value.alias"}),
    ("return x + 1, 0", "y = x + 1\n    return y, y", {"value.kind"}),
    ("return x * 1", "return x.add_(0) * 1", set()),
    ("return x * 1", "y = x * 1\n    x += 1\n    return y", {"inputs.data"}),
    ("return net(x)", "return net(x).detach()", {"value.requires_grad", "value.leaf", "grads.kind"}),
    ("return net(x)", "return net(x) - net(x).detach() * 2 + net(x) * 1", {"value.data", "grads.data"}),
    ("return x + 1", "SEEN.append(1)\n    return x + 1", {"state.kind"}),
    ("return x + 1", "net.last += 1\n    return x + 1", {"state.data"}),
    ("return x + 1", "net.bias.data[0] = 7\n    return x + 1", {"state.data"}),
    ("return x + 1", "print(1)\n    return x + 1", {"stdout"}),
    ("print(x)\n    return x + 1", "print(x.double())\n    return x + 1", {"stdout.dtype"}),
    ("print(x)\n    return x + 1", "print(x.double() * 2)\n    return x + 1", {"stdout"}),
    ("return x * 3", "return x.bfloat16() * 3.3", {"value.dtype", "value.promoted"}),
    ("print(x.long())\n    return x + 1", "print(x)\n    return x + 1", {"stdout.dtype"}),
    ("return repr(x.half() * 0.1)", "return repr((x * 0.1003).half())", {"value.rounding"}),
    ("return repr(x.half() * 0.1)", "return repr((x * 0.2).half())", {"value.data"}),
    ("return x + 1", "logging.info(1)\n    return x + 1", {"logs"}),
    ("return x + 1", "warnings.warn('1')\n    return x + 1", {"warnings"}),
    ("return x + 1", "torch.rand(1)\n    return x + 1", {"rng"}),
    ("return x + 1", "random.random()\n    return x + 1", {"rng"}),
    ("return x + 1", "raise ValueError", {"raised ValueError instead of nothing"}),
    ("return x + 1", "return x.long().add_(0.5)", {"raised RuntimeError instead of nothing for its dtypes"}),
    ("x.to(torch.cfloat).sum().item() > 1", "x.to(torch.cfloat).sum() > 1", set()),
    ("x.to(torch.cfloat).sum().item() > 1", "x[9]", {"raised IndexError instead of TypeError"}),
    ("raise IndexError", "raise ValueError", {"raised ValueError instead of IndexError"}),
    ("x += 1\n    raise IndexError", "raise IndexError", {"raised IndexError at another place"}),
    ("torch.rand(1)\n    raise IndexError", "raise IndexError", {"rng before an exception"}),
    (
        "x += torch.rand(1)\n    raise IndexError",
        "raise IndexError",
        {"raised IndexError at another place", "rng before an exception"},
    ),
]


@pytest.mark.many
@pytest.mark.parametrize(("before", "after", "expected"), PAIRS)
def test_what_differs_is_named(before: str, after: str, expected: set[str]) -> None:
    texts = [f"{HEAD}    {body}\n" for body in (before, after)]
    want, got = (observed(text, "[(torch.tensor([1.0, 2.0]),)]", kept_names(texts[0]), "") for text in texts)
    assert set(judge.differences(want, got)) == expected


def test_gradients_that_raise_may_raise_with_the_result_when_compiled() -> None:
    fine = {"value": ["int", "1"], "grads": None}
    late = {**fine, "grads": ["raised", "RuntimeError"]}
    early = {"raised": "RuntimeError"}
    assert judge.compiled_differences([fine, late, fine], [fine, early, early]) == {}
    assert judge.compiled_differences([fine], [early]) == {"raised True instead of nothing": 0}
    assert judge.differences([fine], [late]) == {"grads.raised": 0}
    assert judge.differences([late], [fine]) == {}


def test_what_nobody_uses_raises_in_no_graph() -> None:
    raising, fine = {"raised": "RuntimeError"}, {"value": ["int", "1"], "grads": None}
    assert judge.new_differences([raising], [fine], [raising]) == {}
    assert judge.new_differences([fine], [raising], [fine]) == {"raised True instead of nothing": 0}
    assert judge.differences([raising], [fine]) == {"raised nothing instead of RuntimeError": 0}


def test_a_mend_admits_what_its_kinds_do() -> None:
    named = SimpleNamespace(differences=(Difference("rounding", ""), Difference("exception", "")))
    silent = SimpleNamespace(differences=())
    assert unnamed(["value.rounding", "grads.rounding", "raised ValueError instead of nothing"], [named]) == []
    assert unnamed(["state.data", "inputs.alias", "rng"], [silent, named]) == ["state.data", "inputs.alias", "rng"]
    assert unnamed(["value.rounding"], [silent]) == ["value.rounding"]
    assert unnamed(["raised TypeError instead of nothing"], [named]) != []  # no mend says that anything runs in vain
    vain = SimpleNamespace(differences=(Difference("exception", "`f(x)` is evaluated on both sides and may raise"),))
    assert unnamed(["raised TypeError instead of nothing"], [vain]) == []
    promoted = SimpleNamespace(differences=(Difference("dtype", ""),))
    assert unnamed(["stdout.dtype", "stdout"], [promoted]) == ["stdout"]
    assert unnamed(["raised RuntimeError instead of nothing for its dtypes"], [promoted]) == []
    assert unnamed(["raised RuntimeError instead of nothing"], [promoted]) != []
    assert unnamed(["warnings"], [named]) == []
    assert unnamed(["stdout.dtype"], [named]) == ["stdout.dtype"]


def test_what_a_promoted_dtype_does_to_other_values_is_covered_with_it() -> None:
    promoted = SimpleNamespace(differences=(Difference("dtype", ""),))
    seen = ["value.dtype", "value.promoted", "value.alias", "value.rounding"]
    assert unnamed(seen, [promoted]) == []
    assert unnamed(seen, [SimpleNamespace(differences=())]) == seen
    assert unnamed(["value.data"], [promoted]) == ["value.data"]


def test_a_program_that_rounding_decides_is_told_from_others() -> None:
    unstable = "    x = (x - x + 3) * 0.1\n"
    unstable += "    return (x - x.sum() / 2) / (x - x.mean() / 3).norm() + (x.sum() - 0.6).sign()"
    stable = "    return x * 2 - x.mean()"
    for body, amplified in ((unstable, True), (stable, False)):
        given = HEAD + body, "[(torch.tensor([1.0, 2.0]),)]", ()
        assert judge.is_amplified(observed(*given, ""), observed_nudged(*given)) == amplified


def test_numbers_drawn_otherwise_before_an_exception_are_no_other_exception() -> None:
    drawn = SimpleNamespace(differences=(Difference("random", ""),))
    moved = SimpleNamespace(differences=(Difference("exception", ""),))
    silent = SimpleNamespace(differences=())
    seen = ["raised IndexError at another place", "rng before an exception"]
    assert unnamed(seen, [drawn]) == unnamed(seen, [moved]) == []
    assert unnamed(seen, [silent]) == seen
    assert unnamed(seen[:1], [drawn]) == seen[:1]
    assert unnamed(["raised IndexError instead of nothing"], [drawn]) == []  # nobody looked what was drawn


def test_what_is_kept_behind_a_graph_that_raised_is_covered_with_its_exception() -> None:
    raising, otherwise = ({"raised": "RuntimeError", "state": ["dict", ["n", number]]} for number in ("1", "2"))
    one, two = ({"value": ["int", "1"], "state": ["dict", ["n", number]]} for number in ("1", "2"))
    seen = judge.compiled_differences([raising, one], [otherwise, two])
    assert seen == {"state.data before an exception": 1}
    assert unnamed(seen, [SimpleNamespace(differences=(Difference("exception", ""),))]) == []
    assert unnamed(seen, [SimpleNamespace(differences=())]) == list(seen)
    assert judge.compiled_differences([one, raising], [two, raising]) == {"state.data": 0}
    assert judge.compiled_differences([raising, one], [raising, two]) == {"state.data": 1}


def test_no_word_covers_other_values() -> None:
    every = SimpleNamespace(differences=tuple(Difference(kind, "") for kind in DIFFERENCES))
    assert unnamed(["value.data", "value.dtype", "grads.data", "state.data"], [every]) == ["value.data"]
    assert unnamed(["value.data", "rng"], [every]) == []  # but of other random numbers
