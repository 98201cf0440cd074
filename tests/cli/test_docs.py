"""The documentation says what the code does."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from graphmend.cli.catalogue import rules
from graphmend.workspace.options import OPTIONS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def test_generated_pages_are_fresh(root: Path) -> None:
    command = [sys.executable, str(root / "docs" / "generate.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stderr}run `python docs/generate.py`"


def test_schema_accepts_what_the_reader_accepts(root: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((root / "docs" / "configuration.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    page = (root / "docs" / "configuration.md").read_text()
    example = tomllib.loads(page.partition("```toml\n")[2].partition("```")[0])
    jsonschema.validate(example["tool"]["graphmend"], schema)
    for wrong in ({"selct": []}, {"select": "GM1"}, {"interpreter": "python"}, {"severity": {"GM1": "loud"}}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)


@pytest.mark.parametrize("name", OPTIONS)
def test_defaults_are_valid_themselves(name: str) -> None:
    option = OPTIONS[name]
    if option.default is not None:
        assert option.kind.read(option.default) == option.default


def test_changelog_lists_every_rule_with_its_status(root: Path) -> None:
    listed = (root / "CHANGELOG.md").read_text()
    for rule in rules().values():
        row = f"| {rule.code} | {rule.name} |"
        assert row in listed, f"CHANGELOG.md has no line that begins with {row}"
        (line,) = (line for line in listed.splitlines() if line.startswith(row))
        assert line.endswith("| preview |" if rule.preview else "| stable |")


def test_links_between_pages_lead_somewhere(root: Path) -> None:
    """Pages of other parts (rules, rewrites, editors) may be missing in a partial checkout."""
    elsewhere = {"docs/rules", "docs/rewrites", "docs/editors.md", "docs/dependencies.md"}
    for page in (root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").glob("*.md"))):
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            target = (page.parent / link).resolve()
            assert target.exists() or str(target.relative_to(root)) in elsewhere, f"{page.name} links to {link}"
