"""Rules for Python values that tensors decide: strings, keys, functions and None that are chosen, what a generator
finds first, numbers for functions that take no tensors for them, and helpers, with what catches their exceptions.
"""

from __future__ import annotations

from fuzz_mends.grammar import Rules

_HANDLED = "<one:RuntimeError|Exception|(ValueError, IndexError)|AttributeError>"

RULES: Rules = {
    "choice": [(6, "<chosen>"), (3, "<found_first>"), (4, "<formula>"), (4, "<called>"), (0.5, "<as_data>")],
    "chosen": [
        (4, "<new:label@k> = 'a' if <test> else 'b'\n<new:tensor> = <old:tensor> <op> SCALES[<@k>]"),
        (
            3,
            "if <test>:\n    <new:label@k> = 'a'\nelse:\n    <@k> = 'b'\n<plain>\n"
            "<new:tensor> = <old:tensor> <op> <lit> if <@k> == 'a' else <old:tensor>",
        ),
        (
            2,
            "if <test>:\n    <new:label@k>, factor = 'sum', 2\nelse:\n    <@k>, factor = 'mean', 3\n"
            "<new:scalar> = F.<one:mse_loss|l1_loss>(<old:tensor>, <old:tensor> * factor, reduction=<@k>)",
        ),
        (
            2,
            "act = torch.<one:relu|sigmoid|abs> if <test> else <one:torch.tanh|F.relu|torch.neg>\n<plain>\n"
            "<new:tensor> = act(<old:tensor>)",
        ),
        (1, "<new:scalar> = <old:tensor>.<one:sum|mean|softmax>(0 if <test> else -1).sum()"),
        (2, "change = None if <test> else <lit>\nif change is not None:\n    <old:tensor@a> = <@a> <op> change"),
        (
            2,
            "change = None\nif <test>:\n    change = <change>\n<plain>\n"
            "<new:tensor> = <old:tensor@a> if change is None else <@a> <op> change",
        ),
        (2, "<new:tensor> = <old:tensor> <op> DEFAULTS['a' if <test> else 'b']"),
        (
            1,
            "<new:label@k> = 'a' if <test> else 'b'\nDEFAULTS[<@k>] += 1\n"
            "<new:tensor> = <old:tensor> <op> DEFAULTS['a']",
        ),
        (
            0.5,
            "at_key = 'b' if <test> else 'a'\nSCALES.pop('b', None)\n<new:tensor> = <old:tensor> <op> SCALES[at_key]",
        ),
        (
            1,
            "step = <one:1|2> if <test> else <one:0|-1|5>\n"
            "<new:tensor> = <old:tensor> <op> (<lit>, <lit>, <lit>)[step]",
        ),
    ],
    "change": [(1, "<scalar>"), (1, "<old:tensor>"), (1, "<tensor>"), (1, "<old:maybe>")],
    "found_first": [
        (
            3,
            "<new:tensor> = next((each for each in (<old:tensor>, <tensor>, <tensor>) "
            "if each.<one:sum()|max()|mean()> <cmp> <lit>), <old:tensor>)",
        ),
        (2, "<new:tensor> = sum(each for each in [<old:tensor>, <tensor>] if each.sum() <cmp> <lit>)"),
        (2, "<new:flag> = any(each.sum() <cmp> <lit> for each in (<old:tensor>, <tensor>))"),
        (1, "<new:list> = [each <op> <lit> for each in <old:tensor>.unbind(0) if each.sum() <cmp> <lit>]"),
        (
            2,
            "for each in (<old:tensor>, <tensor>):\n    if each.sum() <cmp> <lit>:\n        break\nelse:\n"
            "    each = <old:tensor>\n<new:tensor> = each <op> <lit>",
        ),
    ],
    # functions of torch that take Python numbers
    "formula": [(6, "<new:number@n> = <scalar_call>.item()\n<formula_of>"), (2, "<let:n=number><formula_of>")],
    "formula_of": [
        (2, "<new:tensor> = F.<one:leaky_relu|elu|celu|hardshrink|softshrink>(<old:tensor>, <@n>)"),
        (1, "<new:tensor> = F.threshold(<old:tensor>, <@n>, <lit>)"),
        (1, "<new:scalar> = F.<one:huber_loss|smooth_l1_loss>(<old:tensor>, <tensor>, 'mean', <@n>)"),
        (2, "<new:tensor> = <old:tensor>.<one:add|sub>(<tensor>, alpha=<@n>)"),
        (2, "<new:tensor> = torch.lerp(<old:tensor>, <old:tensor>, <@n>)"),
        (2, "<new:tensor> = <old:tensor>.<one:clamp_min|clamp_max|clamp|fmod|pow|hardshrink>(<@n>)"),
        (1, "<new:scalar> = torch.quantile(<old:tensor>, <@n>)"),
        (1, "<new:part> = torch.linspace(0, <@n>, 4)"),
        (1, "<new:tensor> = <old:tensor>.roll(int(<@n>), 0)"),
        (1, "<new:part> = <old:tensor>.narrow(0, int(<@n>), 1)"),
        (1, "<new:scalar> = <old:tensor>.<one:kthvalue|topk>(max(int(<@n>), 1)).values.sum()"),
        (1, "<new:tensor> = <old:tensor>.<one:tril|triu>(int(<@n>))"),
        (1, "<new:part> = torch.full((3,), <@n>)"),
        (1, "<new:tensor> = torch.nan_to_num(<old:tensor>, nan=<@n>)"),
    ],
    # helpers that tensors decide in, and who sees what they raise
    "called": [
        (2, "<has:helper><new:tensor> = helper(<old:tensor>)"),
        (4, f"<has:helper>try:\n    <old:tensor@a> = helper(<old:tensor>)\nexcept {_HANDLED}:\n    <@a> = x * 0"),
        (2, f"<has:helper>try:\n    <old:tensor@a> = helper(<@a>).view(2, -1)[0]\nexcept {_HANDLED}:\n    pass"),
        (
            1,
            "<has:helper><use:contextlib>with contextlib.suppress(<one:RuntimeError|ValueError>):\n"
            "    <old:tensor@a> = helper(<@a>)",
        ),
        (1, "<has:helper>try:\n    <new:tensor> = helper(<old:tensor>)\nfinally:\n    print('tried')"),
        (1, "<has:helper>with watched():\n    <old:tensor@a> = helper(<@a>)"),
        (1, "with watched():\n    <old:tensor@a> = <side_of> if <test> else <side_of>"),
        (2, "<new:number> = measured(<old:tensor>)"),
        (2, "if measured(<old:tensor>) <cmp> <lit>:\n    <block>"),
        (1, f"try:\n    <new:number@n> = measured(<tensor>)\nexcept {_HANDLED}:\n    <@n> = <lit>"),
        (1, "<use:time>began = time.perf_counter()\n<plain>\n<new:flag> = elapsed(began) >= 0"),
        (0.5, "<use:time>began = time.perf_counter()\nif elapsed(began) < 0:\n    <old:tensor@a> = <@a> * 100"),
    ],
    "side_of": [(2, "<@a> <op> <lit>"), (1, "<@a>.<unary>"), (1, "<@a>.view(2, -1)[0]")],
    # names that are read as data
    "as_data": [
        (2, "<new:number@n> = <scalar_call>.item()\nprint(sorted(locals()))"),
        (1, "<new:number@n> = <scalar_call>.item()\nprint(isinstance(eval('<@n>'), (int, float)))"),
        (1, "if <test>:\n    <bind>\nprint(len(vars()))"),
    ],
}
