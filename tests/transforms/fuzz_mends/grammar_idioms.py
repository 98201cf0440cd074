"""Rules for longer pieces that models are made of: experts, splits, buffers, hidden labels, gradients of gradients."""

from __future__ import annotations

from fuzz_mends.grammar import Rules

_EXPERTS = """\
<has:rank2><has:module>weights<serial@n>, chosen<@n> = torch.topk(self.gate(<old:tensor@x>).softmax(-1), 2)
routed<@n> = F.one_hot(chosen<@n>, num_classes=3).permute(2, 1, 0)
<new:tensor@o> = torch.zeros_like(<@x>)
"""
_FOUND = "at<@n>, rows<@n> = torch.where(routed<@n>[e<@n>])\n"

RULES: Rules = {
    "idiom": [
        (6, "<experts>"),
        (2, "<segments>"),
        (3, "<buffers>"),
        (3, "<gradients>"),
        (3, "<sizes>"),
        (2, "<statistics>"),
        (1, "<unknown>"),
    ],
    # of tokens in a loop over experts: @x goes in, @o comes out
    "experts": [
        (2, _EXPERTS + "for e<@n> in range(3):\n    " + _FOUND + "    if <found>:\n        <contributed>"),
        (
            2,
            _EXPERTS
            + "for e<@n> in range(3):\n    "
            + _FOUND
            + "    if <missing>:\n        continue\n    <contributed>",
        ),
        (3, _EXPERTS + "hit<@n> = <hit>\nfor e<@n> in hit<@n>:\n    " + _FOUND + "    <contributed>"),
        (
            2,
            _EXPERTS + "hit<@n> = <hit_tensors>\nfor i<@n> in hit<@n>:\n"
            "    e<@n> = i<@n><one:.item()|[0]>\n    " + _FOUND + "    <contributed>",
        ),
        (1, _EXPERTS + "for e<@n> in range(3):\n    " + _FOUND + "    <contributed>"),
    ],
    "found": [(2, "rows<@n>.numel() > 0"), (1, "len(rows<@n>) != 0"), (1, "rows<@n>.shape[0] > 0")],
    "missing": [(2, "rows<@n>.numel() == 0"), (1, "rows<@n>.shape[0] == 0"), (1, "len(rows<@n>) == 0")],
    "hit": [
        (3, "(routed<@n>.sum(dim=(-1, -2)) > 0).nonzero(as_tuple=True)[0].tolist()"),
        (2, "torch.greater(routed<@n>.sum(dim=(-1, -2)), 0).nonzero(as_tuple=True)[0].tolist()"),
        (1, "(routed<@n>.sum(dim=(-1, -2)) <cmp> 0).nonzero().flatten().tolist()"),
    ],
    "hit_tensors": [
        (2, "torch.greater(routed<@n>.sum(dim=(-1, -2)), 0).nonzero()"),
        (1, "torch.any(routed<@n>, dim=(-2, -1)).nonzero(as_tuple=False)"),
    ],
    "contributed": [
        (4, "<@o>.index_add_(0, rows<@n>, self.layers[e<@n>](<@x>[rows<@n>]) * weights<@n>[rows<@n>, at<@n>, None])"),
        (2, "<@o>[rows<@n>] += self.layers[e<@n>](<@x>[rows<@n>])"),
        (1, "<@o>[rows<@n>] = <@x>[rows<@n>] <op> <lit>"),
        (1, "<@o>.index_add_(0, rows<@n>, (<@x>[rows<@n>] <op> <lit>).to(<@o>.dtype))"),
        (1, "part<@n> = <@x>[rows<@n>] <op> <lit>\n<@o>.index_add_(0, rows<@n>, part<@n>.to(<@o>.dtype))"),
        (0.5, "<@o>[rows<@n>] += <@x>[rows<@n>].<one:mean(0)|sum()|exp()>"),
    ],
    "segments": [
        (
            2,
            "lengths = torch.tensor(<one:[1, 2]|[2, 1]|[1, 3]|[2, 2]|[0, 4]>)\n"
            "<new:list> = [piece.<one:sum(0)|mean(0)|sum()|sum(dim=0)> for piece in <old:tensor>"
            ".split(lengths.tolist())]",
        ),
        (
            2,
            "lengths = torch.tensor(<one:[1, 2]|[1, 3]|[2, 2]>)\n<new:tensor@f> = <old:tensor>.float()\n"
            "<new:list> = [piece.<one:sum(0)|mean(0)> for piece in <@f>.split(lengths.tolist())]",
        ),
    ],
    "buffers": [
        (
            0.5,
            "<has:module>if <test>:\n    self.register_buffer('chosen', self.<one:avg|spare>, persistent=False)\n"
            "else:\n    self.register_buffer('chosen', self.<one:spare|avg>, persistent=False)",
        ),
        (
            3,
            "<has:module>if <test>:\n    if not hasattr(self, 'made'):\n        self.made = torch.<one:ones|zeros>(4)\n"
            "    self.register_buffer('chosen', self.made, persistent=False)\n"
            "else:\n    self.spare = self.spare.to(x.device)\n"
            "    self.register_buffer('chosen', self.spare, persistent=False)",
        ),
        (
            2,
            "<has:module>if self.training:\n    with torch.no_grad():\n"
            "        self.avg.mul_(0.9).add_(<tensor>, alpha=0.1)\n"
            "        self.steps += <mask_name>.sum().item()",
        ),
        (
            1,
            "<has:module>with torch.no_grad():\n    if <test>:\n"
            "        self.avg.copy_(<tensor>)\n        self.hits.add_(1)",
        ),
        (1, "<has:module>if self.last is None or <test>:\n    self.last = <tensor>"),
    ],
    "gradients": [
        (1, "<new:tensor@d> = <old:tensor>.detach()\n<@d>.requires_grad = True"),
        (1, "<new:tensor@d> = <old:tensor>.detach().requires_grad_()\n<new:scalar> = (<@d> <op> <lit>).sum()"),
        (1, "<old:tensor@d>.data = <tensor>"),
        (1, "<new:tensor@d> = <old:tensor>.clone()\n<@d>.data = <@d> <op> <lit>"),
        (
            1,
            "with torch.enable_grad():\n    inner = <old:tensor>.detach().requires_grad_()\n"
            "    <new:tensor@g> = <tensor> * inner\n"
            "    <@g> = torch.autograd.grad(<@g>.sum(), inner)[0]",
        ),
        (0.5, "<new:tensor@d> = <tensor>\n<@d>.register_hook(lambda g: g * 2) if <@d>.requires_grad else None"),
    ],
    "sizes": [
        (
            1,
            "labels = <one:torch.tensor([0, 1, 1])|torch.tensor([2, 0])|torch.tensor([3, 3])>\n"
            "<new:part> = F.one_hot(labels).float() @ torch.<one:eye(2)|ones(3, 2)|ones(4, 4)>",
        ),
        (
            1,
            "<new:part> = torch.repeat_interleave("
            "<old:tensor>, torch.tensor(<one:[1, 2]|[2, 1, 1]|[1, 0, 2, 1]>), dim=0)",
        ),
        (1, "<new:part> = torch.bincount(<old:tensor>.flatten().long().abs(), minlength=<one:4|8>)"),
        (1, "<new:count> = torch.unique(<old:tensor>)<one:.numel()|.shape[0]|.size(0)>"),
        (1, "<new:part> = <old:tensor>.unique()"),
        (1, "<new:part> = torch.arange(<number>)"),
        (1, "<new:part> = torch.<one:zeros|ones>(<place_number>)"),
        (1, "<new:part> = <old:tensor>[torch.randperm(<old:tensor>.shape[0])]"),
        (1, "<new:tensor> = <old:tensor>.<one:repeat|tile>(<place_number>)"),
    ],
    "statistics": [
        (
            2,
            "<let:x=tensor_name><let:m=mask_name>"
            "<@x>[<@m>] = (<@x>[<@m>] - <@x>[<@m>].mean()) / <@x>[<@m>].<one:std()|sum()|norm()>",
        ),
        (
            1,
            "<let:x=tensor_name><let:m=mask_name>"
            "<new:part@p> = <@x>[<@m>]\n<new:scalar> = ((<@p> - <@p>.mean()) ** 2).<one:mean|sum>()",
        ),
        (1, "<new:mask@m> = <old:tensor@x> != <lit>\n<new:scalar> = (<@x> * <@m>).sum() / <@m>.sum().clamp(min=1)"),
        (
            1,
            "<new:mask@m> = <mask>\nif <@m>.sum() > 0:\n    "
            "<new:scalar@l> = F.mse_loss(<old:tensor@x>[<@m>], torch.zeros_like(<@x>[<@m>]))\n"
            "else:\n    <@l> = x.new_zeros(())",
        ),
    ],
    "unknown": [
        (
            2,
            "<has:module>if <test>:\n    <old:tensor@a> = self.lin(<@a>)\n"
            "else:\n    <old:tensor> = self.lin2(<old:tensor>)",
        ),
        (1, "<has:helper>if <test>:\n    <old:tensor> = helper(<old:tensor>)"),
        (1, "<has:unknown>if <test>:\n    <old:tensor@a> = unknown(<@a>)"),
    ],
}
