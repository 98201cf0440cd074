"""GM9: what only TorchDynamo saw. The codes that `merge` gives to breaks without a finding, documented as rules are."""

from __future__ import annotations

from graphmend.analysis.finding import Effect


class DynamoCode:
    """A code of the GM9 family. It judges nothing: TorchDynamo did, in `graphmend verify` or an editor's check."""

    code: str
    name: str
    message = "TorchDynamo breaks the graph here: {reason}"
    advice = ""
    preview = False
    effect: Effect


class DynamoBreak(DynamoCode):
    """
    What it does:
        Reports a graph break that TorchDynamo made on the inputs that were tried, and that `graphmend check` did not
        foresee.

    Why it breaks:
        TorchDynamo says so: the message holds its reason, the evidence the calls that lead to the place, and the
        advice its hints. Reading source follows only what it can prove; running finds the rest.

    Example:
        def forward(self, x):
            return self.scale(x)  # a C function that was registered at run time

    Use instead:
        # what TorchDynamo's own hint says; its page for the break's id shows more

    Mends:
        none: nothing is known of the place but that it breaks

    References:
        https://meta-pytorch.github.io/compile-graph-break-site/
    """

    code = "GM901"
    name = "dynamo-break"
    effect = "splits"


class DynamoSkippedFrame(DynamoCode):
    """
    What it does:
        Reports a function that TorchDynamo gave up as a whole, where `graphmend check` did not foresee it: the
        function runs eagerly, and only what it calls may be compiled.

    Why it breaks:
        A break inside a loop, `try`, a generator or most `with` blocks can't be resumed after, so nothing of the frame
        becomes a graph.

    Example:
        @torch.compile
        def f(xs):
            for x in xs:
                native.step(x)  # breaks in a loop: all of f runs eagerly
            return xs

    Use instead:
        @torch.compile
        def f(x):  # compile what stands inside the loop
            return x * 2

    Mends:
        none: see the break that the reason names

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.skipped_functions.html
    """

    code = "GM902"
    name = "dynamo-skipped-frame"
    effect = "skips-frame"


class DynamoRaises(DynamoCode):
    """
    What it does:
        Reports a place where tracing raised an error: a break under `fullgraph=True`, or an error of TorchDynamo.

    Why it breaks:
        `fullgraph=True` allows no break, so the first one ends the program with the reason that is shown.

    Example:
        @torch.compile(fullgraph=True)
        def f(x):
            native.step(x)
            return x

    Use instead:
        @torch.compile
        def f(x):  # without fullgraph it splits the graph instead, and GM901 says where
            native.step(x)
            return x

    Mends:
        none: see the break that the reason names

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.fullgraph_true.html
    """

    code = "GM903"
    name = "dynamo-raises"
    effect = "raises"


CODES: tuple[type[DynamoCode], ...] = (DynamoBreak, DynamoSkippedFrame, DynamoRaises)
