"""Inputs and settings that a person finds by reading: the files of settings, the docstring, the data of a call."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

import pytest

from graphmend.dynamo.worker.inputs.feedback import repairs
from graphmend.dynamo.worker.inputs.reading.shapes import Tensor
from graphmend.dynamo.worker.inputs.search import Search
from graphmend.dynamo.worker.project import data_files, values

from .read_projects import PROJECTS, UNFOLDING
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


@pytest.mark.parametrize("name", UNFOLDING)
def test_a_file_that_unfolds_to_gigabytes_is_not_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / "conf.yaml"
    path.write_text(UNFOLDING[name])
    assert data_files.read(str(path), int) is values.UNKNOWN


def test_what_few_aliases_stand_for_is_read(tmp_path: Path) -> None:
    path = tmp_path / "conf.yaml"
    path.write_text("a: &a {x: 1, y: [2, 3]}\nb: {<<: *a, z: *a}")
    a = {"x": 2, "y": [3, 4]}
    assert data_files.read(str(path), lambda number: number + 1) == {"a": a, "b": {**a, "z": a}}


def test_a_large_size_that_an_error_asks_for_is_tried_after_all_smaller_ones() -> None:
    """The last dimension is joined to itself, and what it is multiplied with has 8192 rows."""

    class Ways:
        def shown(self) -> list[dict[str, Tensor]]:
            return [{"x": Tensor("float", (64, 64, 16))}]

        def any_shape(self) -> list[dict[str, Tensor]]:
            return [{"x": Tensor("float", (2, 3))}]

        def with_missing(self, *_: object) -> list[dict[str, Tensor]]:
            return []

    tried = []
    for texts, failed in Search(Ways(), len, []).tries():  # type: ignore[arg-type]
        *rows, last = (int(size) for size in re.findall(r"\d+", texts["x"]))
        tried.append((*rows, last))
        failed(RuntimeError(f"cannot be multiplied ({math.prod(rows)}x{2 * last} and 8192x1)"))
    assert tried.index((2, 3)) < tried.index((64, 64, 4096)), tried


@pytest.mark.parametrize(
    ("error", "given", "wanted"),
    [
        (
            IndexError("index 1 is out of bounds for dimension 0 with size 1"),
            Tensor("int", (6,), 2),
            "torch.randint(0, 2, (6,)).sort().values",
        ),
        (IndexError("index 3 is out of range"), Tensor("int", (2, 5)), "torch.randint(0, 8, (2, 3))"),
        (
            RuntimeError("expected input[2, 8, 7] to have 6 channels, but got 8 channels instead"),
            Tensor("float", (2, 5, 8)),
            "torch.randn(2, 5, 6)",
        ),
    ],
)
def test_what_an_error_asks_for(error: BaseException, given: Tensor, wanted: str) -> None:
    assert wanted in [each["x"].text() for each in repairs.after(error, {"x": given})]
