"""Rules for what other code holds or asks: numbers in lists, keys of sorting, bits, tensors that a side makes, parts of
masked reductions that stand in them more than once, comparisons of kept numbers, and which tensor a name means.
"""

from __future__ import annotations

from fuzz_mends.grammar import Rules

RULES: Rules = {
    "held": [
        (4, "<in_list>"),
        (2, "<sorted_by>"),
        (2, "<bits>"),
        (3, "<made_inside>"),
        (3, "<twice_masked>"),
        (4, "<compared>"),
        (1, "<which>"),
    ],
    "in_list": [
        (2, "numbers = [<number>, <number>]\n<new:tensor> = <old:tensor> <op> numbers[<one:0|1|-1>]"),
        (
            2,
            "numbers = [<old:tensor>.sum().item(), <one:2|0.5>]\n<new:number@b> = float(numbers[<one:0|1>])\n"
            "<@b> += 1\n<new:tensor> = <old:tensor> * <@b> + numbers[<one:0|1>]",
        ),
        (
            2,
            "numbers = []\nfor each in range(2):\n    numbers.append((<old:tensor> <op> each).sum().item())\n"
            "<new:tensor> = <old:tensor> * "
            "<one:max(numbers)|sum(numbers)|numbers[-1]|sorted(numbers)[0]|min(numbers)|len(numbers)>",
        ),
        (1, "numbers = <old:tensor>.flatten().tolist()\n<new:scalar> = x.sum() * <one:len(set(numbers))|numbers[0]>"),
        (
            1,
            "numbers = [<number>, <number>]\nfor each in <one:numbers|reversed(numbers)|sorted(numbers)>:\n"
            "    <old:tensor@a> = <@a> <op> <one:each|float(each)|round(each, 1)|int(each)>",
        ),
    ],
    "sorted_by": [
        (
            2,
            "<new:tensor>, *_ = sorted([<old:tensor>, x], key=lambda t: t.<one:sum()|max()|mean().item()>"
            "<one:|, reverse=True>)",
        ),
        (
            1,
            "ranked = [<old:tensor>, <old:tensor>]\n"
            "order = sorted(range(2), key=lambda i: ranked[i].sum()<one:|, reverse=True>)\n"
            "<new:scalar> = x.sum() * order[0]",
        ),
        (1, "ranked = [<old:tensor>, <old:tensor>]\n<new:tensor> = min(ranked, key=torch.<one:sum|max|norm>)"),
    ],
    "bit_aug": [(1, "&="), (1, "|="), (1, "^=")],
    "bits": [
        (2, "<new:mask@m> = <mask>\nif <test>:\n    <@m> <bit_aug> <mask>"),
        (1, "if <test>:\n    <old:mask@m> <bit_aug> <mask>\nelse:\n    <@m> <bit_aug> <mask>"),
        (1, "<new:part@b> = x.long()\nif <test>:\n    <@b> <bit_aug> <one:1|3>"),
        (1, "<new:mask@m> = <mask>\nif <test>:\n    <@m>[<one:0|...|:1>] <bit_aug> <one:True|False>"),
    ],
    "made_inside": [
        (
            2,
            "if <test>:\n    made = torch.<one:zeros_like|ones_like|clone>(<old:tensor@a>)\n"
            "    made[<slot>] = <filling0>\n    <@a> = <@a> + made",
        ),
        (
            2,
            "if <test>:\n    <old:tensor@a> = <@a> * 1\n    <@a>[<slot>] = <lit>\nelse:\n    <@a> = <@a> + 1",
        ),
        (
            2,
            "if <test>:\n    made = <one:x.clone()|x + 1|x>\n    made.<one:mul_(2)|add_(1)|zero_()>\n"
            "else:\n    made = <one:x|x * 2>\n<new:tensor> = made <op> <lit>",
        ),
        (1, "made = x.clone()\nif <test>:\n    made[<mask_name>] = <lit>\n<new:tensor> = made"),
    ],
    "twice_masked": [
        (
            2,
            "<let:x=tensor_name><let:m=mask_name>"
            "<new:scalar> = (<@x>[<@m>] - <@x>[<@m>].mean()).<one:std()|pow(2).mean()|abs().max()|norm()>",
        ),
        (
            2,
            "<let:x=tensor_name><let:m=mask_name>"
            "<new:scalar> = F.<one:mse_loss|l1_loss|smooth_l1_loss|huber_loss>"
            "((<@x> <op> <lit>)[<@m>], <@x>.detach()[<@m>])",
        ),
        (
            2,
            "<let:x=tensor_name><let:m=mask_name>"
            "<new:scalar> = <@x>[<@m>].<one:median()|var()|quantile(0.5)|prod()|amax()|logsumexp(0)|softmax(0).sum()>",
        ),
    ],
    "compared": [
        (3, "if <number> <cmp> <one:0.1|16777217|1e-7|3|2.5>:\n    <bind>\nelse:\n    <bind>"),
        (2, "<new:flag> = <number> <cmp> <number>"),
        (1, "<new:flag> = not <number>"),
        (1, "if <number> in <one:(0.1, 2)|{1, 2, 0.7}|[0, 1.5]>:\n    <bind>\nelse:\n    <bind>"),
        (1, "<new:tensor> = <old:tensor> * (<number> <cmp> <lit>)"),
        (1, "if 0 <cmp> <number> <cmp> <one:3|0.7>:\n    <bind>"),
        (
            1,
            "try:\n    <new:number@b> = <one:1.0|2> / <number>\nexcept ZeroDivisionError:\n    <@b> = 0.0\n"
            "<new:tensor> = <old:tensor> * <@b>",
        ),
    ],
    "which": [
        (1, "<new:flag> = <old:tensor> is <old:tensor>"),
        (1, "<new:count> = len({<old:tensor>, <old:tensor>})"),
        (1, "<new:flag> = any(t is x for t in [<old:tensor>, <old:tensor>])"),
        (1, "<new:tensor> = {<old:tensor@a>: x, x: <old:tensor>}[<@a>]"),
    ],
}
