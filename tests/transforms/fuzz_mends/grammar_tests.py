"""Rules for what is asked: tests on tensors, on numbers of tensors, and on what is known while tracing."""

from __future__ import annotations

from fuzz_mends.grammar import Rules

RULES: Rules = {
    "test0": [(5, "<scalar> > <lit>"), (3, "<mask_name>.any()")],
    "test": [
        (14, "<scalar_call> <cmp> <lit>"),
        (5, "<scalar> <cmp> <lit>"),
        (4, "<scalar_call> <cmp> <scalar>"),
        (7, "<mask_name>.<one:any|all>()"),
        (2, "torch.<one:any|all>(<mask>)"),
        (4, "not <atom>"),
        (4, "<atom> <one:and|or> <atom>"),
        (2, "<known> <one:and|or> <atom>"),
        (1, "<atom> and <known>"),
        (1, "not <known> or <atom>"),
        (4, "<number_cmp>"),
        (2, "bool(<test>)"),
        (1.5, "0 < <scalar_call> < <lit>"),
        (2, "<scalar_call>"),
        (1.5, "<old:scalar>"),
        (1.5, "<mask_name>.sum() <cmp> <lit>"),
        (0.7, "torch.equal(<old:tensor>, <tensor>)"),
        (0.7, "torch.allclose(<old:tensor>, <tensor>)"),
        (0.7, "(<new:scalar> := <scalar_call>) <cmp> <lit>"),
        (0.7, "<has:index>k <cmp> <one:0|1|2>"),
        (0.3, "<scalar_call> in (0, 1)"),
        (0.3, "<lit> <cmp> <scalar_call>"),
        (0.4, "<use:math>math.isnan(<number>)"),
        (0.4, "<mask_name>.nonzero().numel() > 0"),
        (0.3, "<old:tensor>.is_nonzero()"),
    ],
    "mask_test": [(5, "<mask_name>.any()"), (1, "<mask_name>.sum() > 0")],
    "atom": [
        (6, "<scalar_call> <cmp> <lit>"),
        (4, "<mask_name>.<one:any|all>()"),
        (2, "<number_cmp>"),
        (1, "(<test>)"),
        (1, "<scalar_call>"),
    ],
    "number_cmp": [
        (4, "<scalar_call>.item() <cmp> <lit>"),
        (3, "<old:number> <cmp> <lit>"),
        (1, "<number> <cmp> <number>"),
        (1, "int(<scalar>) == <one:0|1|2>"),
    ],
    # known while tracing
    "known": [
        (3, "<has:flag>flag"),
        (2, "x.dim() == <one:1|2>"),
        (2, "<old:tensor>.numel() > <one:0|1>"),
        (1, "<old:tensor>.requires_grad"),
        (1, "<old:tensor>.is_floating_point()"),
        (1, "x.shape[0] > 2"),
        (1, "<has:module>self.training"),
        (0.5, "<old:flag>"),
        (0.5, "<old:maybe> is not None"),
        (0.5, "<old:tensor>.dtype == torch.<one:float32|int64|bool>"),
    ],
}
