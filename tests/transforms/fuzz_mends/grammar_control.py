"""Rules for control flow: branches of many forms, loops, contexts, `try`, `match`, and what a function returns."""

from __future__ import annotations

import textwrap

from fuzz_mends.grammar import Dead, Rules, Writer


def branch(writer: Writer) -> str:
    """An `if` whose sides have one form, as people write them, or whatever comes."""
    form = writer.weighted(_FORMS)
    sides = 1 if form in _ALONE else writer.weighted([(4, 1), (6, 2), (1.5, 3), (0.5, 4)])
    open_ended = sides == 1 or writer.maybe(0.15)
    test = writer.make("test" if form != "guarded" or writer.maybe(0.2) else "mask_test")
    target = _target(writer, open_ended) if form == "bind" else ""
    if form == "store":
        target = writer.one(_places(writer))
    writer.label("b", writer.old("tensor"))
    text, bound = "", []
    for number in range(sides):
        if number == 0:
            head = f"if {test}:"
        elif number == sides - 1 and not open_ended:
            head = "else:"
        else:
            head = f"elif {writer.make('test')}:"
        writer.label("m", _asked(test))
        with writer.inner():
            body = _side(writer, form, target)
            bound.append(set(writer.scope.kinds))
            kinds = dict(writer.scope.kinds)
        text += f"{head}\n{textwrap.indent(body, '    ')}\n"
    if form == "bind" and not open_ended:
        for name in sorted(set.intersection(*bound)):
            if name not in writer.scope.kinds:
                writer.scope.bind(name, kinds[name])
    return text.rstrip("\n")


_FORMS: list[tuple[float, str]] = [
    (30, "bind"),
    (9, "in_place"),
    (8, "store"),
    (9, "return"),
    (9, "output"),
    (7, "guarded"),
    (12, "mixed"),
    (3, "bind_and_output"),
]
#: forms whose sides are seldom more than one
_ALONE = ("guarded",)


def _target(writer: Writer, open_ended: bool) -> str:
    old = writer.scope.of("tensor")
    if open_ended or writer.maybe(0.5):
        return writer.one(old)
    return writer.one("y z h u w".split())


def _places(writer: Writer) -> list[str]:
    """What a store to an attribute, or to an element, may go to."""
    places = [f"{writer.old('tensor')}[{writer.one(['0', '-1', ':1', '...'])}]"]
    if "module" in writer.features:
        places += ["self.last", "self.last", "self.avg"]
    if "box" in writer.features:
        places += ["box.h", "box.h"]
    if "store" in writer.features:
        places.append("STORE['a']")
    return places


def _asked(test: str) -> str:
    """The mask whose `any` or `all` a test asks for."""
    for end in (".any()", ".all()", ".sum() > 0"):
        if test.endswith(end):
            return test.removeprefix("not ").removesuffix(end)
    return "(x > 0)"


def _side(writer: Writer, form: str, target: str) -> str:
    if form == "output":
        return writer.statements(writer.weighted([(4, 1), (1, 2)]), "output")
    if form == "bind_and_output":
        return writer.statement("output") + "\n" + writer.statements(1, "bind")
    extra = [writer.statement("side_extra")] if writer.maybe(0.06 if form == "return" else 0.2) else []
    match form:
        case "bind":
            last = writer.apply(f"{target} = <side>")
            writer.scope.bind(target, "tensor")
        case "store":
            last = writer.apply(f"{target} = <side>")
            if writer.maybe(0.4):
                last += "\n" + writer.statement("bind")
        case "return":
            last = "return " + writer.make("side" if writer.maybe(0.6) else "result")
        case "guarded":
            last = writer.statement("guarded")
        case "in_place":
            last = writer.statements(writer.weighted([(4, 1), (2, 2)]), "in_place_or_bind")
        case _:
            last = writer.block(count=writer.weighted([(3, 1), (3, 2), (1, 3)]))
    return "\n".join([*extra, last])


def leave(writer: Writer) -> str:
    """An early end of a loop, where there is one around."""
    if "loop" not in writer.features:
        raise Dead
    return writer.fill(f"if <test>:\n    {writer.one(['break', 'break', 'continue', 'return <result>'])}")


def loop(writer: Writer) -> str:
    head = writer.weighted(
        [
            (5, "for i in range(<one:2|3|4>):"),
            (1, "for i, part in enumerate(<old:tensor>):"),
            (1, "for part in <old:tensor>.unbind():"),
            (1, "for i in range(min(int(<scalar>), 3)):"),
            (0.5, "for _ in range(<place>.clamp(max=3)):"),
            (1, "for i in <mask_name>.nonzero()<one:.flatten().tolist()|[:, 0]|.squeeze(-1)>:"),
            (0.5, "for i in torch.where(<mask_name>)[0].tolist():"),
            (0.5, "for part in <old:list>:"),
        ]
    )
    text = writer.fill(head)
    with writer.inner(), writer.having("loop"):
        if "for i" in head:
            writer.scope.bind("i", "count")
        body = writer.statements(writer.weighted([(2, 1), (4, 2), (3, 3)]), "loop_statement")
    return f"{text}\n{textwrap.indent(body, '    ')}"


def until(writer: Writer) -> str:
    """A `while` that ends for certain: a tensor that only grows is a part of its test."""
    name = writer.old("tensor")
    step = writer.one(["1", "2", "5"])
    counter = writer.one(["turns", "t"])
    start = writer.one(["torch.zeros(())", "torch.zeros(())", "x.new_zeros(())", "torch.tensor(0)", "0"])
    asked = writer.one(
        [
            f"{counter} < 6",
            f"{counter} + {name}.abs().clamp(max=9).sum() < 30",
            f"{counter} < 9 and <test>",
            f"({counter} < 9) & ({name}.sum() < 20)",
            f"{name}.abs().sum() < 50 and {counter} < 10",
        ]
    )
    head = writer.fill(asked)
    with writer.inner(), writer.having("loop"):
        body = writer.statements(writer.weighted([(4, 1), (2, 2)]), "bind")
        if writer.maybe(0.2):
            body += "\n" + writer.fill("if <test>:\n    break")
    lines = [f"{counter} = {start}", f"while {head}:", f"    {counter} = {counter} + {step}"]
    writer.scope.bind(counter, "count" if start == "0" else "scalar")
    return "\n".join(lines) + "\n" + textwrap.indent(body, "    ")


def matched(writer: Writer) -> str:
    subject = writer.one(["<scalar>", "<scalar_call>.item()", "<place>", "int(<scalar>)", "<old:scalar>"])
    text = writer.fill(f"match {subject}:")
    target = writer.old("tensor")
    form = writer.one([f"{target} = <tensor>", f"{target} = <tensor>", "return <tensor>", "<block>"])
    for case in [*writer.chance.sample(["0", "1", "2 | 3", "-1"], writer.one([1, 2])), "_"]:
        with writer.inner():
            text += f"\n    case {case}:\n{textwrap.indent(writer.fill(form), ' ' * 8)}"
    return text


RULES: Rules = {
    "statement": [
        (30, "<plain>"),
        (26, branch),
        (10, "<scalars>"),
        (8, "<masked>"),
        (7, "<checks>"),
        (7, "<output>"),
        (5, loop),
        (3, until),
        (4, "<indices>"),
        (3, "<attribute>"),
        (2, matched),
        (2, "<environment>"),
        (3, "<context>"),
        (2, "<attempt>"),
        (3, "<idiom>"),
        (2, leave),
        (2, "<new:tensor> = <tensor> if <test> else <tensor>"),
        (4, "<choice>"),
    ],
    "breaking": [
        (36, branch),
        (10, "<scalars>"),
        (3, "<remembered>"),
        (9, "<masked>"),
        (8, "<checks>"),
        (7, "<output>"),
        (6, loop),
        (4, until),
        (5, "<indices>"),
        (2, matched),
        (6, "<environment>"),
        (3, "<context>"),
        (9, "<idiom>"),
        (2, "<let:b=tensor_name><new:tensor> = <side> if <test> else <side>"),
        (1, "<new:tensor> = <tensor> if <test> else <tensor>"),
        (24, "<choice>"),
        (7, "<form>"),
    ],
    "loop_statement": [(6, "<bind>"), (4, leave), (3, "<statement>"), (2, "<in_place>"), (1, "<output>")],
    "side_extra": [
        (4, "<plain>"),
        (2, "<output>"),
        (1, "<attribute>"),
        (1, "<scalars>"),
        (2, branch),
        (1, "<in_place>"),
    ],
    # a number of a tensor that is written to later on
    "remembered": [
        (3, "<new:number> = <old:tensor@a>[<one:0|-1|0, 0>].item()\n<@a><written>"),
        (2, "<new:number> = <old:scalar@a>.item()\n<@a><written>"),
        (1, "<new:number>, *_ = <old:tensor@a>.tolist()\n<@a><written>"),
        (2, "<has:module><new:number> = self.scale.item()\nself.scale<written>"),
        (1, "<new:part> = <old:tensor@a>[<place_number>]\n<@a><written>"),
        (1, "<old:tensor@b> = (<side> if <test> else <side>)\n<in_place>"),
    ],
    "written": [(2, ".<one:mul_(2)|add_(1)|zero_()|neg_()>"), (1, " <one:+|*>= 2"), (1, "[<one:0|...>] = <lit>")],
    "in_place_or_bind": [(4, "<in_place>"), (1, "<bind>"), (1, "<attribute>")],
    "guarded": [
        (4, "<let:x=tensor_name><@x>[<@m>] = <picked>"),
        (2, "<let:x=tensor_name><@x>[<@m>] <aug> <picked>"),
        (3, "<old:tensor>[<@m>] = <filling0>"),
        (1, "<old:tensor@a> = <@a>.clone()\n<@a>[<@m>] = <lit>"),
        (1, "<bind>"),
        (1, "<new:number> = <old:tensor>[<@m>].<reduce>.item()\nprint(<old:number>)"),
    ],
    "context": [
        (4, "with torch.no_grad():\n    <block>"),
        (1, "with torch.enable_grad():\n    <block>"),
        (1, "with torch.autocast('cpu', dtype=torch.bfloat16):\n    <block>"),
        (3, "with torch.device('<one:cpu|meta>'):\n    <new:part> = <made>"),
        (1, "with torch.device('cpu'):\n    <block>"),
        (0.5, "<use:warnings>with warnings.catch_warnings():\n    <block>"),
        (0.5, "with torch.backends.cudnn.flags(enabled=False):\n    <block>"),
        (0.5, "with torch.autograd.<one:detect_anomaly()|set_detect_anomaly(True)>:\n    <block>"),
        (0.5, "<use:contextlib>with contextlib.suppress(<one:ValueError|RuntimeError>):\n    <block>"),
        (0.5, "with torch.set_grad_enabled(<known>):\n    <block>"),
    ],
    "made": [
        (4, "torch.<one:ones|zeros|arange|eye|hann_window>(<one:2|4>)"),
        (2, "torch.<one:tensor|asarray|as_tensor|scalar_tensor>(<one:1.0|2>)"),
        (1, "torch.<one:full((2,), 1.0)|linspace(0, 1, 4)|randn(2)|randperm(4)|empty_strided((2,), (1,)).shape>"),
        (1, "torch.<one:zeros_like|ones_like>(<old:tensor>) + torch.ones(1)"),
        (1, "<old:tensor> + torch.ones(1)"),
        (0.5, "nn.Linear(2, 2).weight.shape"),
    ],
    "attempt": [
        (3, "try:\n    <block>\nexcept <one:ValueError|RuntimeError|Exception|(IndexError, TypeError)>:\n    <block>"),
        (1, "try:\n    <block>\nfinally:\n    <block>"),
        (1, "try:\n    <output>\n    <block>\nexcept Exception as error:\n    print(type(error).__name__)"),
        (1, "try:\n    <checks>\nexcept ValueError:\n    <block>"),
    ],
    # what sides compute: mostly of one shape, from the same tensor @b
    "side": [(10, "<kin>"), (4, "<tensor>")],
    "kin": [
        (8, "<@b> <op> <lit>"),
        (3, "<@b>.<unary>"),
        (2, "<@b>.<same>"),
        (2, "<@b> <op> <@b>"),
        (2, "<@b>"),
        (1, "<one:-|+><@b>"),
        (1, "torch.<one:zeros_like|ones_like|relu|square>(<@b>)"),
        (1, "F.<one:relu|gelu|softplus>(<@b>)"),
        (2, "<@b> <op> <factor>"),
        (1, "<@b> <op> <number>"),
        (1, "(<@b> <op> <lit>).<unary>"),
        (2, "<has:module><@b> <op> self.<one:weight|avg|scale>"),
        (1, "<has:module>self.<one:lin|act>(<@b>)"),
        (4, "<has:module><has:property><@b> <op> self.level"),
    ],
    "result": [
        (5, "<tensor>"),
        (4, "<old:tensor>"),
        (2, "<old:tensor>, <tensor>"),
        (1, "<old:tensor>, <scalar>"),
        (0.5, "{'a': <tensor>}"),
        (0.5, "<old:tensor>, None"),
        (0.5, "[<tensor>, <old:tensor>]"),
        (0.5, "<number>"),
        (0.5, "<tensor> if <test> else <tensor>"),
        (0.5, "<old:part|tensor>"),
    ],
}
