"""The notation in which the data files hold signatures, and which overload a call means.

A function's overloads are one string, `OVERLOAD|OVERLOAD|...`, and one overload is `PARAMETERS>RESULT` or
`PARAMETERS>RESULT#FLAGS`:

    input:,dim,keepdim=,*,out=>(values=T indices=T)#r

Parameters are separated by commas. After the name, `:` says that it takes tensors only, `~` that it takes tensors and
other things, and `=` that it has a default; `*` starts the keyword-only ones, `*sizes` takes the remaining positional
arguments, `**kw` the remaining keywords. A receiver is left out. Results are a word ("T" tensor, "L" list or tuple of
tensors of unknown length, "int", "size", "self", "none", "?", ...), alternatives `T/none`, or a tuple `(T T)`, named
`(values=T indices=T)`. Flags are letters, see `FLAGS`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

#: what the letters after `#` mean
FLAGS: Mapping[str, str] = {
    "d": "the shape of the result depends on values (tag dynamic_output_shape)",
    "x": "the result depends on values and is no tensor (tag data_dependent_output)",
    "p": "pointwise (tag pointwise)",
    "r": "a reduction (tag reduction, or parameters dim and keepdim)",
    "v": "the result may share memory with an argument (alias annotation)",
    "i": "writes into its first argument (alias annotation with !)",
    "s": "draws random numbers (tag nondeterministic_seeded)",
}


class Returns(NamedTuple):
    """What a call gives.

    `kind` is "T" (tensor), "L" (list or tuple of tensors, length unknown), "int", "float", "bool", "number", "str",
    "dtype", "device", "layout", "size", "list", "ndarray", "none", "self" (the receiver), "?" (unknown), "tuple" with
    `items` (and `fields` where it is a named one), or "union" with the alternatives as `items`.
    """

    kind: str
    items: tuple[Returns, ...] = ()
    fields: tuple[str, ...] = ()

    @property
    def is_tensor(self) -> bool:
        return self.kind in ("T", "self")

    def field(self, name: str) -> Returns | None:
        """The item of a named tuple."""
        return self.items[self.fields.index(name)] if name in self.fields else None


class Overload(NamedTuple):
    """One way to call a function."""

    positional: tuple[str, ...]
    keyword_only: tuple[str, ...]
    required: frozenset[str]
    tensors_only: frozenset[str]
    no_tensors: frozenset[str]
    varargs: str | None
    varkw: bool
    returns: Returns
    flags: str

    def accepts(self, positional: int, keywords: frozenset[str], tensors: Mapping[int | str, bool]) -> bool:
        """Whether a call may mean this overload; `tensors` says of some arguments whether they are tensors."""
        if positional > len(self.positional) and self.varargs is None:
            return False
        given = {*self.positional[:positional], *keywords}
        if not self._knows(keywords) or not self.required <= given:
            return False
        for argument, is_tensor in tensors.items():
            name = self.parameter(argument)
            if name in self.no_tensors if is_tensor else name in self.tensors_only:
                return False
        return True

    def _knows(self, keywords: frozenset[str]) -> bool:
        return self.varkw or keywords <= {*self.positional, *self.keyword_only}

    def parameter(self, argument: int | str) -> str | None:
        """The name of the parameter that an argument, by position or keyword, fills."""
        if isinstance(argument, str):
            return argument
        return self.positional[argument] if argument < len(self.positional) else self.varargs


def parse(text: str) -> tuple[Overload, ...]:
    """All overloads of one function."""
    return tuple(map(_overload, text.split("|")))


def _overload(text: str) -> Overload:
    parameters, _, rest = text.rpartition(">")
    returns, _, flags = rest.partition("#")
    positional: list[str] = []
    keyword_only: list[str] = []
    required: set[str] = set()
    tensors_only: set[str] = set()
    no_tensors: set[str] = set()
    varargs: str | None = None
    varkw = False
    names = positional
    for part in parameters.split(",") if parameters else ():
        if part.startswith("**"):
            varkw = True
            continue
        name = part.lstrip("*").rstrip(":~=")
        if part.startswith("*"):
            names = keyword_only
            varargs = name or None
        else:
            names.append(name)
            if not part.endswith("="):
                required.add(name)
        if name:
            marker = part.rstrip("=")[-1]
            if marker == ":":
                tensors_only.add(name)
            elif marker != "~":
                no_tensors.add(name)
    return Overload(
        tuple(positional),
        tuple(keyword_only),
        frozenset(required),
        frozenset(tensors_only),
        frozenset(no_tensors),
        varargs,
        varkw,
        parse_result(returns),
        flags,
    )


def parse_result(text: str) -> Returns:
    """A result in the notation."""
    options = list(_split(text, "/"))
    if len(options) > 1:
        return Returns("union", tuple(map(parse_result, options)))
    if not text.startswith("("):
        return Returns(text)
    items, fields = [], []
    for part in _split(text[1:-1], " "):
        name, equals, item = part.partition("=")
        if equals and "(" not in name:
            fields.append(name)
            items.append(parse_result(item))
        else:
            items.append(parse_result(part))
    return Returns("tuple", tuple(items), tuple(fields))


def _split(text: str, separator: str) -> Iterator[str]:
    depth = start = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if c == separator and not depth:
            yield text[start:i]
            start = i + 1
    yield text[start:]


def join(returns: list[Returns]) -> Returns:
    """What a call gives that may mean several overloads."""
    options = dict.fromkeys(o for r in returns for o in (r.items if r.kind == "union" else (r,)))
    if Returns("?") in options:
        return Returns("?")
    return next(iter(options)) if len(options) == 1 else Returns("union", tuple(options))
