"""Rewrites that no rule proved, and what they take for granted of their inputs: each is seen on some inputs that the
search makes, whatever was given.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from graphmend.dynamo.comparison import Comparison
from graphmend.dynamo.verdict import judge

from .conftest import Checks

pytestmark = pytest.mark.torch

Compared = Callable[[str, str, str, str], Comparison]


@pytest.fixture
def compared(checks: Checks, write: Callable[..., Path]) -> Compared:
    """Both texts of one function's body, on `inputs`."""

    def compared(parameters: str, before: str, after: str, inputs: str) -> Comparison:
        def text(body: str) -> str:
            made = f"def example_inputs():\n    return [({inputs},)]\n"
            return f"\n\n@torch.compile\ndef step({parameters}):\n    {body}\n\n{made}"

        path = write(text(before))
        mended = path.read_text(encoding="utf-8").replace(text(before), text(after))
        report = checks(path, mended={str(path): mended}, unproven=True)
        assert report.after is not None, report.problem
        (target,) = report.after.targets
        assert target.comparison is not None, target.problem
        return target.comparison

    return compared


WRONG = {
    "integers are not negative": ("x, n", "return x + int(n)", "return x + n.abs()", "torch.rand(3), torch.tensor(1)"),
    "integers are 0 or 1": ("x, n", "return x * int(n)", "return x * (n != 0)", "torch.rand(3), torch.tensor(1)"),
    "numbers of Python are small": ("x, n", "return x * n", "return x * min(n, 2)", "torch.rand(3), 2"),
    "equal integers are neighbours": (
        "x",
        "return x + len(set(x.tolist()))",
        "return x + (x[1:] != x[:-1]).sum() + 1",
        "torch.tensor([1, 2, 2])",
    ),
    "the second tensor is longer": (
        "a, b",
        "return a[: b.shape[0]].sum() + b.sum()",
        "return a.sum() + b.sum()",
        "torch.rand(2), torch.rand(3)",
    ),
    "two rows are kept": (
        "x",
        "s = x.norm(dim=-1)\n    return x[s > s.mean()].mean(0)",
        "k = (s := x.norm(dim=-1)) > s.mean()\n    return (x * k[:, None]).sum(0) / k.sum().clamp(min=2)",
        "torch.arange(12.0).reshape(6, 2)",
    ),
    "no row is as large as the limit": (
        "x, limit=0.25",
        "return torch.stack([r - r.mean() if r.max() > limit else r for r in x])",
        "return torch.where(x.amax(-1, keepdim=True) >= limit, x - x.mean(-1, keepdim=True), x)",
        "torch.rand(3, 4)",
    ),
    "numbers are of float32": ("x", "return x * 2", "return x.float() * 2", "torch.rand(3)"),
    "there are rows": (
        "x",
        "return x.amax(-1).sum() if len(x) else x.sum()",
        "return x.amax(0).sum() * 0 + x.amax(-1).sum()",
        "torch.rand(3, 3)",
    ),
    "no anomaly is looked for": (
        "x",
        "torch.autograd.set_detect_anomaly(False)\n    return x + 1",
        "return x + 1",
        "torch.rand(3)",
    ),
    "gradients are on": ("x", "return x.detach().requires_grad_()", "return x.detach() + x * 0", "torch.rand(3)"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_taken_for_granted_is_seen(compared: Compared, name: str) -> None:
    found = compared(*WRONG[name])
    assert not judge(found, {"rounding", "callers"}).passes


OTHER = {
    "rank": ("x", "return x.reshape(x.numel())", "return x.reshape(x.shape[0] * x.shape[-1])", "torch.rand(3, 4)"),
    "integers": ("x", "return x + 2", "return x + 2.0", "torch.rand(3)"),
}


@pytest.mark.parametrize("name", OTHER)
def test_what_holds_for_the_rank_and_the_type_that_were_given_is_named(compared: Compared, name: str) -> None:
    found = compared(*OTHER[name])
    assert {item.kind for item in found.found} == {"other-inputs"}
    assert judge(found, {"callers"}).passes
    assert not judge(found).passes


def test_what_a_call_sets_for_the_whole_process_is_compared_and_set_back(compared: Compared) -> None:
    text = "torch.set_default_dtype(torch.float64)\n    return x + 1"
    found = compared("x", text, "return x + 1", "torch.rand(3)")
    assert "the default dtype" in found.found[0].line
    assert compared("x", text, text.replace("x + 1", "1 + x"), "torch.rand(3)").equal


def test_inputs_that_the_original_refuses_need_not_be_refused(compared: Compared) -> None:
    """`map_` takes nothing that wants gradients, eagerly or compiled."""
    found = compared("x", "return x.clone().map_(x, lambda a, b: a + b)", "return x.clone().add_(x)", "torch.rand(3)")
    assert judge(found, {"rounding", "callers"}).passes, found.found


def test_indices_beyond_a_sparse_tensor_end_no_process(compared: Compared) -> None:
    """torch itself does not look at them, and writes where they point to."""
    text = "return torch.sparse_coo_tensor(i, v, (2, 2)).to_dense()"
    inputs = "torch.tensor([[0, 1], [1, 0]]), torch.rand(2)"
    assert compared("i, v", text, text.replace("(2, 2)", "[2, 2]"), inputs).equal


def test_a_gradient_that_cancels_has_the_rounding_of_its_terms(compared: Compared) -> None:
    """Equal rows: which of them attention picks is all the same, and the gradient of the query is rounding alone."""
    parameters, inputs = "q, x", "torch.randn(3, 7), torch.full((5, 7), 9.1)"
    before = "return (q @ x.mT).softmax(-1) @ x"
    found = compared(parameters, before, "return ((q @ x.mT).softmax(-1).unsqueeze(-1) * x).sum(1)", inputs)
    assert judge(found, {"rounding", "callers"}).passes, found.found
    assert any("of the largest gradient" in item.detail for item in found.found)
    wrong = compared(parameters, before, "return (q.detach() @ x.mT).softmax(-1) @ x + q.sum() * 1e-3", inputs)
    assert "gradients" in {item.kind for item in wrong.found}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_gradients_a_twentieth_too_large_are_others_in_types_of_few_digits(compared: Compared, dtype: str) -> None:
    before = "h = x @ w\n    return (h.tanh() * h).sum()"
    wrong = before.replace("x @ w", "x @ w\n    h = h + (h - h.detach()) * 0.05")
    inputs = f"torch.randn(8, 16).to(torch.{dtype}), torch.randn(16, 16).div(8).to(torch.{dtype})"
    found = compared("x, w", before, wrong, inputs)
    seen = {item.kind for item in found.found if item.where.startswith("the inputs as given, inputs that want")}
    assert seen == {"gradients"}, found.found
