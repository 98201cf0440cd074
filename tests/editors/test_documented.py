"""The configurations in docs/editors.md for editors that the tests cannot run: they parse, each key is one that the
editor knows, with a value of its type, and the server knows what they set. Those for Neovim and Emacs are run.

None of these editors publishes a schema that can be had without it: Zed makes its own when it runs, Helix has none. The
schemas below say what their sources take: Helix's `helix-core/src/syntax/config.rs` (a language refuses other keys),
Zed's `crates/settings_content/src/project.rs`, and the `sublime-package.json` of Sublime Text's package LSP.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("graphmend")  # Neovim's tests run in an environment without it

TEXT = (Path(__file__).resolve().parents[2] / "docs/editors.md").read_text("utf-8")


def block(section: str, language: str) -> str:
    """The first block in a section."""
    (body,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE)
    return str(re.findall(rf"```{language}\n(.*?)```", body, re.DOTALL)[0])


STRINGS = {"type": "array", "items": {"type": "string"}}
STRING, BOOLEAN, OBJECT = {"type": "string"}, {"type": "boolean"}, {"type": "object"}


def closed(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    """A table with these keys and no others."""
    found = {name.replace("__", "-"): schema for name, schema in properties.items()}
    return {"type": "object", "properties": found, "required": list(required), "additionalProperties": False}


def each(schema: dict[str, Any]) -> dict[str, Any]:
    """A table of entries by names of the user's."""
    return {"type": "object", "additionalProperties": schema}


HELIX = closed(
    language={
        "type": "array",
        "items": closed(
            ("name",),
            name=STRING,
            language__id=STRING,
            roots=STRINGS,
            auto__format=BOOLEAN,
            diagnostic__severity={"enum": ["hint", "info", "warning", "error"]},
            persistent__diagnostic__sources=STRINGS,
            language__servers={
                "type": "array",
                "items": {
                    "anyOf": [STRING, closed(("name",), name=STRING, only__features=STRINGS, except__features=STRINGS)]
                },
            },
        ),
    },
    language__server=each(
        closed(
            ("command",),
            command=STRING,
            args=STRINGS,
            environment=each(STRING),
            config=OBJECT,
            timeout={"type": "integer", "minimum": 0},
            required__root__patterns=STRINGS,
        )
    ),
)
ZED = closed(
    languages=each(closed(language_servers=STRINGS, enable_language_server=BOOLEAN)),
    lsp=each(
        closed(
            binary=closed(path=STRING, arguments=STRINGS, env=each(STRING), ignore_system_version=BOOLEAN),
            initialization_options=OBJECT,
            settings=OBJECT,
            enable_lsp_tasks=BOOLEAN,
        )
    ),
)
SUBLIME = closed(
    clients=each(
        closed(
            ("command", "selector"),
            enabled=BOOLEAN,
            command=STRINGS,
            selector=STRING,
            priority_selector=STRING,
            schemes=STRINGS,
            initializationOptions=OBJECT,
            settings=OBJECT,
            env=OBJECT,
            disabled_capabilities=OBJECT,
            experimental_capabilities=OBJECT,
            diagnostics_mode={"enum": ["open_files", "workspace"]},
        )
    )
)


@pytest.mark.parametrize(
    ("section", "language", "schema"),
    [("Helix", "toml", HELIX), ("Zed", "json", ZED), ("Sublime Text", "json", SUBLIME)],
)
def test_the_editor_knows_every_key(section: str, language: str, schema: dict[str, Any]) -> None:
    jsonschema: Any = pytest.importorskip("jsonschema")
    reader: Any = json if language == "json" else pytest.importorskip("tomllib")
    given = reader.loads(block(section, language))
    jsonschema.validate(given, schema)
    name = next(iter(given))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**given, f"{name}s": given[name]}, schema)


def test_helix_and_zed_use_the_server_that_they_define() -> None:
    tomllib = pytest.importorskip("tomllib")
    given = tomllib.loads(block("Helix", "toml"))
    assert set(given["language-server"]) <= {name for each in given["language"] for name in each["language-servers"]}
    given = json.loads(block("Zed", "json"))
    assert set(given["lsp"]) <= {name for each in given["languages"].values() for name in each["language_servers"]}


def helix() -> Any:
    tomllib = pytest.importorskip("tomllib")
    return tomllib.loads(block("Helix", "toml"))["language-server"]["graphmend"]["config"]


def zed() -> Any:
    return json.loads(block("Zed", "json"))["lsp"]["pylsp"]["initialization_options"]


def sublime() -> Any:
    client = json.loads(block("Sublime Text", "json"))["clients"]["graphmend"]
    settings = {name.removeprefix("graphmend."): value for name, value in client["settings"].items()}
    return {**client["initializationOptions"], "settings": settings}


@pytest.mark.parametrize("options", [helix, zed, sublime])
def test_settings_and_trust_are_what_the_server_reads(options: Any) -> None:
    from graphmend.server.analyses import folder_settings

    given = options()
    assert isinstance(given["trusted"], bool)
    settings, wrong = folder_settings.read(given["settings"])
    assert settings
    assert wrong == ()
