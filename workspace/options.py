"""Every option that a project or an editor may set: its name, type and meaning. The reader, the JSON schema and the
reference page are all made from this table. Knows no file and no command line.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from graphmend.analysis.settings import current_code

#: the kinds of ways in which a mend may change a program (`transforms/fix.py` says what each means)
DIFFERENCES = (
    "rounding", "overflow", "nan", "dtype", "shape", "strides", "aliasing", "type", "exception", "gradients",
    "zero-gradients", "evaluation", "random", "output", "output-order", "state", "specialised", "private", "callers",
)  # fmt: skip
SEVERITIES = ("error", "warning", "information", "hint", "off")
_SELECTOR = re.compile(r"GM\d{0,3}\Z")
_VERSION = re.compile(r"\d+\.\d+(\.\d+)?([.+a-z].*)?\Z")


class ConfigurationError(Exception):
    """A configuration that cannot be used; the message is one line and says where."""


class _Wrong(Exception):
    """A value of the wrong type; the message says what it must be."""


@dataclass(frozen=True)
class Kind:
    """A type of value: how it is written in words and in JSON schema, and how it is read."""

    words: str
    schema: Mapping[str, Any]
    read: Callable[[Any], Any]


def _require(right: bool, words: str) -> None:
    if not right:
        raise _Wrong(words)


def _boolean(value: Any) -> bool:
    _require(isinstance(value, bool), "true or false")
    return bool(value)


def _string(value: Any) -> str:
    _require(isinstance(value, str), "a string")
    return str(value)


def _strings(value: Any) -> tuple[str, ...]:
    right = isinstance(value, list | tuple) and all(isinstance(v, str) for v in value)
    _require(right, f"a list of strings{_in_a_list(value)}")
    return tuple(value)


def _in_a_list(value: Any) -> str:
    """How to write a text that should have been a list with it."""
    return f', such as ["{value}"]' if isinstance(value, str) and value else ""


def _selector(value: Any) -> str:
    text = _string(value)
    meant = f'; did you mean "{text.upper()}"?' if _SELECTOR.match(text.upper()) else ""
    words = f'a rule code or the beginning of one, such as "GM1" or "GM101", not "{text}"{meant}'
    _require(bool(_SELECTOR.match(text)), words)
    return current_code(text)


def _selectors(value: Any) -> tuple[str, ...]:
    _require(isinstance(value, list | tuple), f"a list of rule codes{_in_a_list(value)}")
    return tuple("GM" if v == "ALL" else _selector(v) for v in value)


def _differences(value: Any) -> tuple[str, ...]:
    for kind in _strings(value):
        words = f'kinds of differences ({", ".join(DIFFERENCES)}), not "{kind}"'
        _require(kind in DIFFERENCES, words + did_you_mean(kind, DIFFERENCES))
    return tuple(value)


def _version(value: Any) -> str:
    _require(isinstance(value, str), 'a version of torch in quotes, such as "2.13"')
    _require(bool(_VERSION.match(value)), f'a version of torch, such as 2.13, not "{value}"')
    return ".".join(value.split(".")[:2])


def _count(value: Any) -> int:
    _require(isinstance(value, int) and not isinstance(value, bool) and value > 0, "a whole number above 0")
    return int(value)


def _seconds(value: Any) -> float:
    _require(isinstance(value, int | float) and not isinstance(value, bool) and value > 0, "a number above 0")
    return float(value)


def _by_pattern(value: Any) -> dict[str, tuple[str, ...]]:
    _require(isinstance(value, Mapping), "a table of file patterns, each with a list of rule codes")
    return {_string(pattern): _selectors(codes) for pattern, codes in value.items()}


def _severities(value: Any) -> dict[str, str]:
    _require(isinstance(value, Mapping), "a table of rule codes, each with a severity")
    return {_selector(code): _one_of(SEVERITIES)(severity) for code, severity in value.items()}


def _targets(value: Any) -> tuple[dict[str, str], ...]:
    words = "a list of tables with the strings `target`, `init` and `inputs`"
    _require(isinstance(value, list | tuple) and all(isinstance(entry, Mapping) for entry in value), words)
    for entry in value:
        _require("target" in entry and set(entry) <= {"target", "init", "inputs"}, words)
        _require(all(isinstance(v, str) for v in entry.values()), words)
    return tuple(dict(entry) for entry in value)


def _one_of(choices: tuple[str, ...]) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        words = ", ".join(f'"{c}"' for c in choices[:-1]) + f' or "{choices[-1]}"'
        _require(isinstance(value, str) and value in choices, f'{words}, not "{value}"')
        return str(value)

    return read


def _choice(*choices: str) -> Kind:
    return Kind(" | ".join(choices), {"enum": list(choices)}, _one_of(choices))


_CODE = {"type": "string", "pattern": "^(GM\\d{0,3}|ALL)$"}
BOOLEAN = Kind("true or false", {"type": "boolean"}, _boolean)
STRING = Kind("a string", {"type": "string"}, _string)
STRINGS = Kind("a list of strings", {"type": "array", "items": {"type": "string"}}, _strings)
CODES = Kind("a list of rule codes", {"type": "array", "items": _CODE}, _selectors)
KINDS = Kind("a list of kinds of differences", {"type": "array", "items": {"enum": list(DIFFERENCES)}}, _differences)
VERSION = Kind("a version", {"type": "string", "pattern": "^\\d+\\.\\d+"}, _version)
SECONDS = Kind("a number of seconds", {"type": "number", "exclusiveMinimum": 0}, _seconds)
COUNT = Kind("a whole number", {"type": "integer", "minimum": 1}, _count)
BY_PATTERN = Kind(
    "a table of file patterns, each with rule codes",
    {"type": "object", "additionalProperties": {"type": "array", "items": _CODE}},
    _by_pattern,
)
BY_CODE = Kind(
    "a table of rule codes, each with a severity",
    {"type": "object", "additionalProperties": {"enum": list(SEVERITIES)}},
    _severities,
)
TARGETS = Kind(
    "tables with target, init and inputs",
    {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {key: {"type": "string"} for key in ("target", "init", "inputs")},
            "required": ["target"],
            "additionalProperties": False,
        },
    },
    _targets,
)


@dataclass(frozen=True)
class Option:
    """One option. `trusted` ones start a process or choose what runs: a project's files may not set them."""

    name: str
    kind: Kind
    default: Any
    doc: str
    trusted: bool = False


OPTIONS: Mapping[str, Option] = {
    option.name: option
    for option in (
        Option("extend", STRING, None, "Another configuration file that this one builds on; relative to this file."),
        Option("select", CODES, ("GM",), "The rules to report, by code or its beginning. The longer match wins."),
        Option("extend-select", CODES, (), "Rules to report besides those of `select`."),
        Option("ignore", CODES, (), "Rules not to report. Wins over `select` at equal length."),
        Option("per-file-ignores", BY_PATTERN, {}, "Rules not to report in files that match a pattern."),
        Option("exclude", STRINGS, None, "Files and folders not to look into, instead of the usual ones."),
        Option("extend-exclude", STRINGS, (), "Files and folders not to look into, besides those of `exclude`."),
        Option("respect-gitignore", BOOLEAN, True, "Leave out what `.gitignore` files name."),
        Option("preview", BOOLEAN, False, "Also report rules that are still being tried."),
        Option("severity", BY_CODE, {}, "The severity of findings by rule code or its beginning; `off` hides them."),
        Option(
            "assume-compiled",
            _choice("modules", "never"),
            "modules",
            "What is taken to be compiled where no `torch.compile` is in sight: the methods that torch calls "
            "of modules, autograd functions and distributions, or nothing.",
        ),
        Option("torch-version", VERSION, None, "The version of torch to check against; by default the installed one."),
        Option("returns-tensor", STRINGS, (), "Qualified names of callables whose result is a tensor."),
        Option("static", STRINGS, (), "Qualified names whose value is known while tracing."),
        Option("ignore-calls", STRINGS, (), "Qualified names of callables that are known not to break."),
        Option("baseline", STRING, None, "A file of known findings that are not reported; relative to this file."),
        Option("targets", TARGETS, (), "What `graphmend verify` may run; data until a check is asked for."),
        Option(
            "model-allowed", BOOLEAN, True, "Whether anybody may ask a language model about this project's functions."
        ),
        Option("enable", BOOLEAN, True, "Whether editors show anything at all."),
        Option("run", _choice("onType", "onSave"), "onType", "When editors check a file."),
        Option(
            "unsafe-fixes",
            BOOLEAN,
            True,
            "Whether editors also offer mends that change behaviour in a way they name; the command makes those with "
            "`--unsafe-fixes` only.",
        ),
        Option(
            "accept",
            KINDS,
            (),
            "Kinds of differences with which a mend counts as safe, such as `rounding`: `--fix` and *fix all* make it. "
            "Its differences are shown all the same, and a mend that silences output is never safe.",
        ),
        Option(
            "diagnostic-mode",
            _choice("openFilesOnly", "workspace"),
            "openFilesOnly",
            "Which files editors show findings for.",
        ),
        Option(
            "code-lens.enable", BOOLEAN, True, "Show a lens for checking with TorchDynamo above compiled functions."
        ),
        Option("log-level", _choice("error", "warning", "info", "debug"), "info", "How much the server logs."),
        Option("interpreter", STRING, None, "The Python interpreter whose torch is used.", trusted=True),
        Option("trusted", BOOLEAN, False, "Whether the workspace's code may be run.", trusted=True),
        Option(
            "verify.mode",
            _choice("off", "onCommand", "onSave"),
            "onCommand",
            "When TorchDynamo is asked.",
            trusted=True,
        ),
        Option("verify.device", STRING, "auto", "Where checks run: `auto`, `cpu`, `cuda` or `cuda:N`.", trusted=True),
        Option("verify.timeout-seconds", SECONDS, 60.0, "How long one check may take.", trusted=True),
        Option(
            "model.endpoint", STRING, None, "Where `graphmend ask` finds an OpenAI-compatible server.", trusted=True
        ),
        Option("model.name", STRING, None, "The model that is asked, as its server calls it.", trusted=True),
        Option(
            "model.key-variable",
            STRING,
            "GRAPHMEND_MODEL_KEY",
            "The environment variable that holds the server's key, where it wants one.",
            trusted=True,
        ),
        Option("model.tries", COUNT, 3, "How many answers are asked for about one break.", trusted=True),
        Option("model.max-tokens", COUNT, 4096, "How long one answer may be.", trusted=True),
        Option("model.timeout-seconds", SECONDS, 120.0, "How long one answer may take.", trusted=True),
        Option("model.requests", COUNT, 20, "How many requests are sent in one run or session.", trusted=True),
        Option(
            "model.rounding",
            _choice("named", "refused"),
            "named",
            "Whether an answer that differs by rounding alone is offered, with that difference named.",
            trusted=True,
        ),
        Option("import-strategy", STRING, None, "Which server VS Code starts.", trusted=True),
        Option(
            "server-interpreter", STRING, None, "The interpreter that VS Code starts the server with.", trusted=True
        ),
    )
}

#: groups that are refused as a whole where a project's file sets them, whatever is inside
TRUSTED_GROUPS = frozenset({"verify", "model"})


def canonical(name: str) -> str:
    """`assumeCompiled` and `assume_compiled` as `assume-compiled`; dots stay."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda m: "-" + m[1].lower(), name).replace("_", "-")


def flatten(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Options by full name: `{"code-lens": {"enable": true}}` becomes `{"code-lens.enable": true}`."""
    groups = {name.rpartition(".")[0] for name in OPTIONS if "." in name}
    flat: dict[str, Any] = {}
    for key, value in table.items():
        name = prefix + canonical(key)
        if name in groups and isinstance(value, Mapping):
            flat.update(flatten(value, name + "."))
        else:
            flat[name] = value
    return flat


def read(name: str, value: Any, where: str) -> Any:
    """The value of an option, checked; `name` is canonical."""
    option = OPTIONS.get(name)
    if option is None:
        inner = next((other for other in OPTIONS if other.endswith(f".{name}")), "")
        meant = f"; did you mean `{inner}`?" if inner else did_you_mean(name, OPTIONS)
        raise ConfigurationError(f"{where}: unknown option `{name}`{meant}")
    try:
        return option.kind.read(value)
    except _Wrong as wrong:
        raise ConfigurationError(f"{where}: `{name}` must be {wrong}") from None


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A question to end a complaint with; "" where nothing is near."""
    near = difflib.get_close_matches(name, list(names), n=1)
    return f"; did you mean `{near[0]}`?" if near else ""
