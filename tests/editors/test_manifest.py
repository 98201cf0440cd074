"""package.json of the VS Code extension against what it speaks of: settings, trust, version, the concise output."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

graphmend = pytest.importorskip("graphmend")  # Neovim's tests run in an environment without it

ROOT = Path(__file__).resolve().parents[2]
MANIFEST: dict[str, Any] = json.loads((ROOT / "vscode-extension/package.json").read_text())
PROPERTIES: dict[str, Any] = MANIFEST["contributes"]["configuration"]["properties"]
SETTINGS = {name.removeprefix("graphmend."): schema for name, schema in PROPERTIES.items()}
OF_THE_EXTENSION = {"trace.server"}


def test_versions_agree() -> None:
    assert MANIFEST["version"] == graphmend.__version__


def test_the_server_knows_every_setting_and_shares_its_default() -> None:
    from graphmend.workspace.options import OPTIONS, canonical

    for name, schema in SETTINGS.items():
        if name in OF_THE_EXTENSION:
            continue
        option = OPTIONS[canonical(name)]
        assert "markdownDescription" in schema, name
        assert set(schema.get("enum", ())) == set(option.kind.schema.get("enum", schema.get("enum", ()))), name
        unset = schema["default"] == "" or option.default is None
        # unsafe mends are offered in editors, where a person chooses, and not made by `--fix`
        assert unset or name == "unsafeFixes" or schema["default"] == json.loads(json.dumps(option.default)), name


def test_what_chooses_what_runs_is_restricted() -> None:
    from graphmend.workspace.options import OPTIONS, canonical

    restricted = MANIFEST["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"]
    trusted = {name for name in SETTINGS if name not in OF_THE_EXTENSION and OPTIONS[canonical(name)].trusted}
    assert {name.removeprefix("graphmend.") for name in restricted} == trusted


def test_the_problem_matcher_reads_the_concise_output(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text("import torch\n\n\n@torch.compile\ndef f(x: torch.Tensor):\n    print('f')\n    return x\n")
    command = [sys.executable, "-m", "graphmend", "check", "--no-cache", "--output-format", "concise", "net.py"]
    line = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout.splitlines()[0]
    (matcher,) = MANIFEST["contributes"]["problemMatchers"]
    pattern = matcher["pattern"]
    found = re.match(pattern["regexp"], line)
    assert found is not None, line
    parts = [found[pattern[part]] for part in ("file", "line", "column", "code")]
    assert parts == ["net.py", "6", "5", "GM201"]
    assert found[pattern["message"]].startswith("print()")
