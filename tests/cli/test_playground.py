"""What the playground answers, in an interpreter without libcst, from the archive that the site carries."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive as the hook of the site writes it, unpacked."""
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        import hooks
    finally:
        sys.path.remove(str(ROOT / "docs"))
    site = tmp_path_factory.mktemp("site")
    (site / "playground").mkdir()
    config = type("Config", (), {"docs_dir": str(ROOT / "docs"), "site_dir": str(site)})
    hooks.on_post_build(config)
    unpacked = site / "unpacked"
    zipfile.ZipFile(site / "playground" / "graphmend.zip").extractall(unpacked)
    return unpacked


def answer(archive: Path, text: str) -> dict[str, Any]:
    """Only the archive and the standard library can be imported, as in the page."""
    code = f"import answers; print(answers.answer({text!r}))"
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=archive, capture_output=True, text=True, check=False,
                          env={"PYTHONPATH": str(archive)})  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def example() -> str:
    found = re.search(r"EXAMPLE = `(.*?)`;", (ROOT / "docs/playground/playground.js").read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example_has_findings_with_evidence_mends_and_a_diff(archive: Path) -> None:
    found = answer(archive, example())
    assert [finding["code"] for finding in found["findings"]] == ["GM101", "GM201", "GM301"]
    assert all(finding["evidence"] for finding in found["findings"])
    assert found["findings"][1]["mends"][0].startswith("mend (safe): ")
    assert re.search(r"^\+ .*graphmend\.runtime\.emit\(print", found["diff"], re.MULTILINE)


def test_a_mend_that_moves_statements_is_told_as_text(archive: Path) -> None:
    body = "    if x.sum() > 0:\n        return x * 2\n    return x + 1\n"
    found = answer(archive, f"import torch\n\n@torch.compile\ndef f(x, y):\n{body}")
    assert found["findings"][0]["mends"][0].startswith("mend (safe): compute both sides")
    assert (found["diff"], "graphmend check --diff" in found["note"]) == ("", True)


@pytest.mark.parametrize(
    ("text", "problem"),
    [("def f(:\n", "line 1: "), ("", ""), ("x = 1\n", ""), ("\0", "line 1: "), ("# ü\r\nx = '🔥'\r\n", "")],
    ids=["broken", "empty", "plain", "zero", "line ends"],
)
def test_other_texts(archive: Path, text: str, problem: str) -> None:
    found = answer(archive, text)
    assert found["findings"] == []
    assert found["problem"].startswith(problem)
    assert bool(found["problem"]) is bool(problem)
