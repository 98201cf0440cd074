"""Experts that are given the rows chosen for them: mended, they are captured whole, and give the same."""

from __future__ import annotations

import pytest
from experts import gives_the_same
from judge import mend_text

HEAD = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.gate, self.down = nn.Linear(4, 6), nn.Linear(4, 6), nn.Linear(6, 4)
        self.norm = nn.Sequential(nn.LayerNorm(4), nn.GELU())

    def forward(self, x):
        if x.dtype != self.up.weight.dtype and not isinstance(self.up, nn.Identity):
            x = x.to(self.up.weight.dtype)
        x = self.norm(x)
        h = F.silu(self.gate(x)) * self.up(x)
        return self.down(h)


class Named(nn.ModuleDict):
    def __init__(self, n):
        super().__init__()
        for e in range(n):
            self[f"expert_{e}"] = Expert()


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Expert() for _ in range(5)])
        self.named = Named(5)
        self.dampen = 0.5
        self.router = nn.Linear(4, 5)
        self.register_buffer("seen", torch.zeros(5))
        self.register_buffer("total", torch.zeros((), dtype=torch.long))

        self.count = 0

    def forward(self, x):
        x = x.view(-1, 4)
        weights, chosen = torch.topk(self.router(x).softmax(-1), 2)
        best = chosen[:, 0]
        mask = F.one_hot(chosen, num_classes=5).permute(2, 1, 0)
        out = torch.zeros_like(x)
"""

FORMS = {
    "pairs": """
        for e in range(5):
            at, rows = torch.where(mask[e])
            y = self.layers[e](x[rows])
            out.index_add_(0, rows, (y * weights[rows, at, None]).to(x.dtype))
        return out
""",
    "compared": """
        for e, layer in enumerate(self.layers):
            rows, at = torch.where(chosen == e)
            if rows.numel() == 0:
                continue
            part = x[rows]
            part = layer(part)
            out[rows] += weights[rows, at].unsqueeze(-1) * part
        return out
""",
    "guarded": """
        for e, layer in enumerate(self.layers):
            rows = (best == e).nonzero(as_tuple=True)[0]
            if len(rows) > 0:
                out[rows] = layer(x[rows])
        return out * 2
""",
    "in_front": """
        for e in range(5):
            at, rows = torch.where(mask[e])
            if rows.shape[0] == 0:
                continue
            y = self.layers[e](x[None, rows].reshape(-1, x.shape[1])) * weights[rows, at, None]
            out.index_add_(0, rows, y.to(x.dtype))
        return out
""",
    "added": """
        for e in range(5):
            rows = (best == e).nonzero(as_tuple=True)[0]
            if rows.shape[0] == 0:
                continue
            out = out.index_add(0, rows, self.layers[e](x[rows]) * weights[rows, 0].unsqueeze(-1))
        return out
""",
    "masks": """
        for e, layer in enumerate(self.layers):
            hit = best == e
            if not hit.any():
                continue
            out[hit] = layer(x[hit]) * weights[:, 0][hit].unsqueeze(-1)
        return out
""",
    "counted": """
        for e, layer in enumerate(self.layers):
            rows, at = torch.where(chosen == e)
            if rows.numel() == 0:
                continue
            out.index_add_(0, rows, layer(x[rows]) * weights[rows, at, None])
            self.seen[e] += rows.shape[0]
            self.total -= len(at)
        return out + self.seen.sum() + self.total
""",
    "named": """
        for e in range(5):
            at, rows = torch.where(mask[e])
            y = self.named[f"expert_{e}"](x[rows]) * weights[rows, at, None]
            if self.dampen > 0:
                if self.training:
                    y = y * 2
                else:
                    y *= 1 - self.dampen
            out.index_add_(0, rows, y.to(x.dtype))
        return out
""",
    "any": """
        for e, layer in enumerate(self.layers):
            hit = best == e
            if hit.any():
                out[hit] += layer(x[hit])
        return out
""",
    "values": """
        for e in best.unique():
            rows = torch.where(best == e)[0]
            out[rows] = self.layers[e](x[rows])
        return out
""",
    "numbers": """
        for e in torch.unique(best).tolist():
            rows = (best == e).nonzero().squeeze(-1)
            out[rows] = self.layers[e](x[rows])
        return out
""",
}


@pytest.mark.torch
@pytest.mark.parametrize("form", FORMS)
def test_every_row_gives_what_chosen_rows_give(form: str) -> None:
    mended = mend_text(HEAD + FORMS[form])
    assert not mended.left
    assert all(a.fix.applicability == "unsafe" for a in mended.applied)
    gives_the_same(HEAD + FORMS[form], mended.source.text)


@pytest.mark.torch
def test_of_a_mask_whose_dimensions_are_not_known() -> None:
    head = HEAD.replace("        x = x.view(-1, 4)\n", "")
    mended = mend_text(head + FORMS["guarded"])
    (fix,) = [a.fix for a in mended.applied]
    assert "one dimension" in fix.reason
    gives_the_same(head + FORMS["guarded"], mended.source.text)


REFUSED = {
    "along the rows": "            out[rows] = x[rows].softmax(0)",
    "a sum of all rows": "            out[rows] = x[rows] - x[rows].mean(0)",
    "random": "            out[rows] = F.dropout(x[rows])",
    "sorted": "            out[rows] = x[rows].flip(0)",
    "elsewhere": "            out[rows] = x[rows] * len(rows)",
    "a number in the program's state": "            out[rows] = x[rows] * 2\n            self.count += len(rows)",
    "twice": "            rows, at = torch.where(chosen > e)\n            out[rows] += x[rows] * 2",
    "changed by rows": "            y = x[rows] * 2\n            y *= x[rows]\n            out[rows] = y",
    "changed where it was picked": "            y = x[rows]\n            if self.dampen > 0:\n"
    "                y *= 2\n            out[rows] = y",
    "a sum on one side": "            y = x[rows] * 2\n            if self.dampen > 0:\n"
    "                y = y - y.sum(0)\n            out[rows] = y",
    "a sum kept on one side": "            y = x[rows] * 2\n            if self.training:\n"
    "                total = y.pow(2).sum()\n            out[rows] = y",
    "bound anew on one side": "            y = x[rows] * 2\n            if self.dampen > 0:\n"
    "                y = self.seen * 1\n            out[rows] = y",
    "counted without rows": "            if rows.numel() == 0:\n                continue\n"
    "            y = x[rows] * 2\n            if self.dampen > 0:\n                self.count = e\n"
    "                y = y * 2\n            out[rows] = y",
    "what lives on": "            y = x[rows]\n            out[rows] = y\n        out = out + y.sum()",
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_what_is_not_computed_row_by_row_stays(body: str) -> None:
    text = (
        f"{HEAD}        for e in range(5):\n            rows = torch.where(best == e)[0]\n{body}\n        return out\n"
    )
    assert "every_row" not in [a.fix.rewrite for a in mend_text(text).applied]


def test_a_layer_that_works_in_place_is_no_such_module() -> None:
    text = (HEAD + FORMS["guarded"]).replace("nn.GELU()", "nn.ReLU(True)")
    assert "every_row" not in [a.fix.rewrite for a in mend_text(text).applied]
