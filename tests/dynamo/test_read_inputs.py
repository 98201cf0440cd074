"""Inputs and settings that a person finds by reading: the files of settings, the docstring, the data of a call."""

from __future__ import annotations

import os

import pytest

from .read_projects import PROJECTS
from .test_project_inputs import fitted

pytestmark = [pytest.mark.torch, pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    folder = tmp_path_factory.mktemp("read")
    text = ""
    for number, project in enumerate(PROJECTS.values()):
        parts = (f"--- {path}\n{content.strip()}\n" for path, content in project.files.items())
        text += f"===== p{number} model.py:Net\n{''.join(parts)}"
    (folder / "projects.txt").write_text(text)
    made = fitted(folder / "projects.txt", folder / "unpacked")
    return {name: made.get(f"p{number}", {}) for number, name in enumerate(PROJECTS)}


@pytest.mark.parametrize("name", PROJECTS)
def test_what_reading_the_project_tells(found: dict[str, dict[str, str]], name: str) -> None:
    assert found[name].get("origin") == PROJECTS[name].origin, found[name]
    assert PROJECTS[name].text in found[name]["text"]
