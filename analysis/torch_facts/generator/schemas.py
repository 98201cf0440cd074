"""torch's operator schemas (`native_functions.yaml`) in, tags and overloads out, in the notation of `overloads.py`.

Half of the generator. The file is read as the line-oriented text that it is: there is no YAML reader to rely on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_TAGS = {
    "dynamic_output_shape": "d",
    "data_dependent_output": "x",
    "pointwise": "p",
    "reduction": "r",
    "nondeterministic_seeded": "s",
}
_RESULTS = {"int": "int", "SymInt": "int", "float": "float", "bool": "bool", "Scalar": "number", "ScalarType": "dtype"}
#: arguments of a schema that the Python parser folds into others or adds
_OPTIONS = frozenset(("out", "dtype", "layout", "device", "pin_memory", "requires_grad", "memory_format", "generator"))
_FIELD = re.compile(r"^  (variants|python_module|tags): *(.*?) *(?:#.*)?$")


@dataclass(frozen=True)
class Parameter:
    name: str
    type: str
    optional: bool
    keyword_only: bool

    @property
    def text(self) -> str:
        base = self.type.rstrip("?")
        marker = ":" if base.startswith("Tensor") and "[" not in base else "~" if base.startswith("Scalar") else ""
        return f"{self.name}{marker}{'=' if self.optional else ''}"


@dataclass(frozen=True)
class Schema:
    """One operator overload."""

    name: str
    parameters: tuple[Parameter, ...]
    returns: str
    flags: str
    module: str
    method: bool

    @property
    def is_out(self) -> bool:
        """Whether this writes its result into an argument made for that."""
        return any(p.keyword_only and "!" in p.type for p in self.parameters)

    def overload(self) -> str:
        texts = []
        for i, p in enumerate(self.parameters):
            if p.keyword_only and (i == 0 or not self.parameters[i - 1].keyword_only):
                texts.append("*")
            texts.append(Parameter("input", p.type, p.optional, p.keyword_only).text if p.name == "self" else p.text)
        return ",".join(texts) + ">" + self.returns

    def signature(self, *, bound: bool) -> frozenset[str]:
        """The parameters' names with markers, as the Python side calls them."""
        names = set()
        for p in self.parameters:
            if p.name == "self":
                if not bound:
                    names.add("input:")
            elif p.name not in _OPTIONS:
                names.add(p.text.rstrip("="))
        return frozenset(names)


def read(text: str) -> list[Schema]:
    """All schemas of `native_functions.yaml`."""
    return [_schema(block) for block in re.split(r"^- func: ", text, flags=re.M)[1:]]


def _schema(block: str) -> Schema:
    head, _, rest = block.partition("\n")
    head = head.split(" # ")[0].strip()
    fields = {m[1]: m[2] for line in rest.splitlines() if (m := _FIELD.match(line))}
    qualified, _, tail = head.partition("(")
    arguments, _, returns = tail.rpartition(" -> ")
    parameters = tuple(_parameters(arguments.rstrip()[:-1]))
    flags = {_TAGS[t] for t in re.findall(r"\w+", fields.get("tags", "")) if t in _TAGS}
    mutates = any("!" in p.type and not p.keyword_only for p in parameters)
    if mutates and "!" in returns:
        flags.add("i")
    elif re.search(r"\(\w+(\|\w+)*\)", returns) and not mutates:
        flags.add("v")
    names = {p.name for p in parameters}
    if {"dim", "keepdim"} <= names:
        flags.add("r")
    return Schema(
        qualified.partition(".")[0],
        parameters,
        _returns(returns),
        "".join(sorted(flags)),
        fields.get("python_module", ""),
        "method" in fields.get("variants", "function"),
    )


def _split(text: str) -> Iterator[str]:
    """Split at top-level commas."""
    depth = start = 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == "," and not depth:
            yield text[start:i].strip()
            start = i + 1
    if text[start:].strip():
        yield text[start:].strip()


def _parameters(text: str) -> Iterator[Parameter]:
    keyword_only = False
    for part in _split(text):
        if part == "*":
            keyword_only = True
            continue
        declared, _, default = part.partition("=")
        type_, _, name = declared.strip().rpartition(" ")
        yield Parameter(name, type_, bool(default), keyword_only)


def _returns(text: str) -> str:
    text = re.sub(r"\([\w!|* ->]*?\)(?=\[|$|[ ,)])", "", text.strip()) if "Tensor(" in text else text.strip()
    if text == "()":
        return "none"
    if text.startswith("("):
        parts = []
        for part in _split(text[1:-1]):
            type_, _, name = part.partition(" ")
            parts.append(f"{name}={_result(type_)}" if name else _result(type_))
        return "(" + " ".join(parts) + ")"
    return _result(text.split(" ")[0])


def _result(type_: str) -> str:
    base = re.sub(r"\(.*?\)", "", type_)
    if base == "Tensor":
        return "T"
    return "L" if base.startswith("Tensor[") else _RESULTS.get(base, "?")


def module_functions(schemas: list[Schema], module: str) -> dict[str, list[str]]:
    """The functions of `torch.fft`, `torch.linalg`, `torch.special` or `torch._C._nn`, with their flags."""
    prefix = f"{module}_"
    found: dict[str, list[str]] = {}
    for schema in schemas:
        if schema.module == module and not schema.is_out:
            text = schema.overload() + (f"#{schema.flags}" if schema.flags else "")
            found.setdefault(schema.name.removeprefix(prefix), []).append(text)
    return found


def by_name(schemas: list[Schema]) -> dict[str, list[Schema]]:
    """Schemas without their out= forms."""
    found: dict[str, list[Schema]] = {}
    for schema in schemas:
        if not schema.is_out:
            found.setdefault(schema.name, []).append(schema)
    return found


def with_flags(name: str, texts: list[str], schemas: Mapping[str, list[Schema]], *, bound: bool) -> list[str]:
    """The overloads of a stub with the flags of the operator that each of them calls."""
    candidates = schemas.get(name, [])
    if not candidates:
        return texts
    common = set.intersection(*(set(c.flags) for c in candidates))
    return [_flagged(text, candidates, common, bound) for text in texts]


def _flagged(text: str, candidates: list[Schema], common: set[str], bound: bool) -> str:
    if "#" in text:
        return text
    marked = {p.rstrip("=") for p in text.rpartition(">")[0].split(",")} - {"*", ""}
    marked = {p for p in marked if p.rstrip(":~") not in _OPTIONS}
    names = {p.lstrip("*").rstrip(":~") for p in marked}
    exact = [c for c in candidates if c.signature(bound=bound) == marked]
    alike = exact or [c for c in candidates if {p.rstrip(":~") for p in c.signature(bound=bound)} == names]
    flags = set.intersection(*(set(c.flags) for c in alike)) if alike else common
    return f"{text}#{''.join(sorted(flags))}" if flags else text
