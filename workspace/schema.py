"""The JSON schema and the reference page of the configuration, made from the table of options."""

from __future__ import annotations

import json
from typing import Any

from graphmend.workspace.config import DEFAULT_EXCLUDE
from graphmend.workspace.options import OPTIONS, Option


def json_schema() -> dict[str, Any]:
    """A JSON schema of `graphmend.toml` and of `[tool.graphmend]`, for editors that complete and check TOML."""
    root: dict[str, Any] = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "GraphMend",
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }
    for option in OPTIONS.values():
        if option.trusted:
            continue
        group, _, name = option.name.rpartition(".")
        table = root
        if group:
            empty = {"type": "object", "properties": {}, "additionalProperties": False}
            table = root["properties"].setdefault(group, empty)
        table["properties"][name] = {"description": option.doc, **option.kind.schema, **_default(option)}
    return root


def reference() -> str:
    """The reference page, in Markdown."""
    parts = [_HEAD]
    parts += [_section(option) for option in OPTIONS.values() if not option.trusted]
    parts.append(_TRUSTED)
    parts += [_section(option) for option in OPTIONS.values() if option.trusted]
    return "\n\n".join(parts) + "\n"


def _default(option: Option) -> dict[str, Any]:
    value = DEFAULT_EXCLUDE if option.name == "exclude" else option.default
    return {} if value is None else {"default": json.loads(json.dumps(value))}


def _section(option: Option) -> str:
    default = _default(option).get("default")
    lines = [f"### `{option.name}`", "", option.doc, "", f"*Type:* {option.kind.words}"]
    if default is not None:
        lines[-1] += f"  \n*Default:* `{json.dumps(default)}`"
    return "\n".join(lines)


_HEAD = """\
# Configuration

<!-- made by `python docs/generate.py` from the table of options; edit workspace/options.py instead -->

Settings stand in `[tool.graphmend]` of a `pyproject.toml`, or in a `graphmend.toml`. The nearest file above a source
file holds for it, and `graphmend.toml` comes before `pyproject.toml` in the same folder. A `pyproject.toml` without
`[tool.graphmend]` does not count. Options of the command line (`--select`, `--config KEY=VALUE`) and of an editor win
over files; `--isolated` reads none.

```toml
[tool.graphmend]
select = ["GM1", "GM2", "GM3"]
extend-exclude = ["third_party"]
torch-version = "2.13"

[tool.graphmend.per-file-ignores]
"tests/**" = ["GM2"]

[tool.graphmend.severity]
GM101 = "error"
GM202 = "off"
```

Names may be written `assume-compiled`, `assume_compiled` or `assumeCompiled`. An unknown name or a wrong type is an
error, and `graphmend check --show-settings` shows what holds. Editors that read JSON schemas complete and check the
file with [configuration.schema.json](configuration.schema.json).

## Options"""

_TRUSTED = """\
## Options that a project may not set

These start a process or choose what runs. They are read from the command line and from the editor only; in a
project's files they are ignored, with one line in the log."""
