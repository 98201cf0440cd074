"""Rules for forms that few programs would have by chance: lists that grow under branches, loops and contexts in
branches, flags that end loops, filters, keys, values that a loop goes through, numbers drawn for a test.
"""

from __future__ import annotations

from fuzz_mends.grammar import Rules

RULES: Rules = {
    "form": [
        (4, "<kept>"),
        (3, "<looped>"),
        (2, "<entered>"),
        (3, "<flagged>"),
        (2, "<filtered>"),
        (3, "<by_key>"),
        (2, "<by_case>"),
        (2, "<every>"),
        (2, "<drawn>"),
        (2, "<ended>"),
        (14, "<held>"),
    ],
    "kept": [
        (
            3,
            "kept_ones = []\nfor each in range(<one:2|3>):\n    hit = <old:tensor@a> <cmp> each\n    if hit.any():\n"
            "        kept_ones.append(<kept_value>)\n"
            "<new:part> = <one:torch.stack(kept_ones).sum(0)|sum(kept_ones)|sum(kept_ones) / max(len(kept_ones), 1)>",
        ),
        (
            2,
            "kept_ones = []\nfor each in range(<one:2|3>):\n    if (<old:tensor@a> <cmp> each).sum() == 0:\n"
            "        continue\n    kept_ones.append(<@a> <op> each)\n"
            "<new:part> = torch.stack(kept_ones).mean() if kept_ones else <old:tensor>",
        ),
    ],
    "kept_value": [(2, "(<@a> * hit).sum()"), (1, "<@a> * each"), (1, "<@a> + 1")],
    "looped": [
        (2, "if <test>:\n    for each in (<old:tensor>, <old:tensor>):\n        each.<one:mul_(2)|add_(1)|zero_()>"),
        (2, "if <test>:\n    for _ in range(<one:2|3>):\n        <old:tensor@a> = <@a> <op> <lit>"),
    ],
    "entered": [
        (2, "if <test>:\n    with torch.no_grad():\n        <old:tensor>.<one:mul_(0.5)|add_(1)|copy_(x * 2)>"),
        (1, "<has:module>if <test>:\n    with torch.no_grad():\n        self.avg.copy_(self.avg <op> <lit>)"),
    ],
    "flagged": [
        (
            2,
            "taken, size = False, 1.0\nwhile not taken and size > 0.1:\n    tried = <old:tensor@a> <op> size\n"
            "    if tried.sum() <cmp> <@a>.sum():\n        taken = True\n    else:\n        size = size * 0.5\n"
            "<new:tensor> = <@a> <op> size",
        ),
        (
            1,
            "taken = False\nfor each in range(3):\n    if not taken:\n        <old:tensor@a> = <@a> <op> <lit>\n"
            "        if <test>:\n            taken = True",
        ),
    ],
    "filtered": [
        (
            2,
            "<new:tensor@b> = <old:tensor@a> * 0\nfor t in [t for t in [<@a>, x] if t.sum() <cmp> <lit>]:\n"
            "    <@b> = <@b> <op> t",
        ),
    ],
    "by_key": [
        (2, "ranked = [<old:tensor>, <old:tensor>, x]\n<new:tensor> = max(ranked, key=lambda t: t.<one:sum|max>())"),
        (
            2,
            "ranked = [<old:tensor>, <old:tensor>]\n"
            "best = <one:max|min>(range(2), key=lambda i: ranked[i].sum().item())\n<new:scalar> = x.sum() * best",
        ),
    ],
    "by_case": [
        (
            2,
            "table = {0: <one:torch.relu|torch.abs>, 1: <one:torch.neg|torch.sigmoid>}\n"
            "<new:tensor> = table[int(<mask_name>.any())](<old:tensor>)",
        ),
        (1, "table = {0: 0.5, 1: 2.0}\n<new:tensor> = <old:tensor> <op> table[<mask_name>.any().int().item()]"),
    ],
    "every": [
        (
            2,
            "<has:module><has:rank2>chosen = <old:tensor@a>.float().sum(1).abs().long() % 3\n"
            "<new:tensor@o> = torch.zeros_like(<@a>)\nfor each in chosen.unique():\n"
            "    picked = torch.where(chosen == each)[0]\n    <@o>[picked] = self.layers[each](<@a>[picked])",
        ),
        (
            2,
            "chosen = (<old:tensor@a>.float().flatten(1).sum(1) > 0).long()\nfor each in chosen.unique():\n"
            "    picked = torch.where(chosen == each)[0]\n    <@a>[picked] = <@a>[picked] <op> <lit>",
        ),
    ],
    "drawn": [
        (
            2,
            "<has:module>drawn = torch.rand([])\nif self.training and drawn < self.drop.p:\n"
            "    <old:tensor@a> = <@a> <op> <lit>",
        ),
        (1, "<has:module>if torch.rand(1).item() < self.drop.p:\n    <old:tensor@a> = <@a> <op> <lit>"),
    ],
    "ended": [
        (
            2,
            "for each in range(3):\n    <old:tensor@a> = <@a> <op> <lit>\n    if <test>:\n        break",
        ),
        (1, "if <test>:\n    <old:tensor@a> = <@a> <op> <lit>\n    <@a>.add_(1)\nelse:\n    <@a>.mul_(2)\n"),
    ],
}
