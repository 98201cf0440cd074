"""The documentation says what the code does."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphmend.cli.rule_catalogue import rules
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


def test_the_rule_and_the_rewrite_of_contributing_work(root: Path) -> None:
    from graphmend.analysis.check import check
    from graphmend.analysis.findings.report import report
    from graphmend.analysis.interprocedural.session import AnalysisSession
    from graphmend.analysis.program.project import Project
    from graphmend.analysis.region.roots import roots
    from graphmend.analysis.settings import Settings
    from graphmend.analysis.syntax.source import Source
    from graphmend.transforms.code.text_edits import apply

    page = (root / "CONTRIBUTING.md").read_text("utf-8")
    rule_text, rewrite_text = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {"__name__": "contributed"}
    exec(compile(rule_text, "rule", "exec"), names)
    exec(compile(rewrite_text, "rewrite", "exec"), names)

    rule, project = names["WriteText"](), Project()
    for examples, codes in ((rule.valid, []), (rule.invalid, [rule.code])):
        for example in examples:
            module = project.read(Source(example, "example.py"))
            assert module is not None
            session = AnalysisSession(module, project, Settings(preview=True), (rule,))
            for start in roots(session, module, session.drive()):
                session.walk_root(start)
            found = report(session.summaries.roots).get("example.py", [])
            assert [one.finding.code for one in found] == codes

    source = Source(rule.invalid[0], "example.py")
    result = check(source)
    (finding,) = result.findings
    fix = names["rewrite"](finding, result.facts(finding))
    assert fix.applicability == "unsafe"
    assert "    if not torch.compiler.is_compiling():\n        pathlib" in apply(source.text, fix.edits(), source)


def test_dynamo_codes_are_those_that_a_check_gives() -> None:
    from graphmend.dynamo import codes, merge

    documented = {(code.code, code.name, code.effect) for code in codes.CODES}
    assert documented == set(merge._CODES.values())


def test_links_between_pages_lead_somewhere(root: Path) -> None:
    pages = (page for page in sorted((root / "docs").rglob("*.md")) if "node_modules" not in page.parts)
    for page in (root / "README.md", root / "CONTRIBUTING.md", *pages):
        prose = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
        for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", prose):
            assert (page.parent / link).exists(), f"{page.relative_to(root)} links to {link}"


@pytest.mark.build
def test_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert {"index.html", "rules/GM101/index.html"} <= {page.relative_to(tmp_path).as_posix() for page in pages}
    for page in pages:
        loaded = re.findall(r"<(?:script|img|link)\b[^>]* (?:src|href)=\"?https?:[^>]+", page.read_text("utf-8"))
        assert not loaded, page
