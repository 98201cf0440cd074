"""The configurations in docs/editors.md for editors that the tests cannot run: they parse, and the server knows what
they set. Those for Neovim and Emacs are run."""

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
