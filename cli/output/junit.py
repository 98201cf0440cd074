"""`--output-format junit`: a test suite a file, a failure a finding, an error for what could not be checked."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, TextIO
from xml.etree import ElementTree as xml

from graphmend.cli.paths import relative

if TYPE_CHECKING:
    from graphmend.cli.checking.file_report import CheckRun, ReportedFinding

#: characters that XML 1.0 cannot hold, not even escaped
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write(run: CheckRun, out: TextIO) -> None:
    by_file: dict[str, list[ReportedFinding]] = defaultdict(list)
    for item in run.items:
        by_file[item.finding.path].append(item)
    total = sum(max(len(by_file[path]), 1) for path in run.files) + len(run.problems)
    counts = {"tests": str(total), "failures": str(len(run.items)), "errors": str(len(run.problems))}
    root = xml.Element("testsuites", {"name": "graphmend", **counts})
    for path in run.files:
        items = by_file[path]
        suite = _suite(root, relative(path), max(len(items), 1), len(items), 0)
        for item in items:
            _failure(suite, path, item)
        if not items:
            xml.SubElement(suite, "testcase", name="graphmend", classname=_clean(relative(path)))
    if run.problems:
        suite = _suite(root, "graphmend", len(run.problems), 0, len(run.problems))
        for problem in run.problems:
            case = xml.SubElement(suite, "testcase", name=_clean(problem), classname="graphmend")
            xml.SubElement(case, "error", message=_clean(problem))
    xml.indent(root)
    out.write('<?xml version="1.0" encoding="UTF-8"?>\n')
    out.write(xml.tostring(root, encoding="unicode") + "\n")


def _suite(root: xml.Element, name: str, tests: int, failures: int, errors: int) -> xml.Element:
    counts = {"tests": str(tests), "failures": str(failures), "errors": str(errors)}
    return xml.SubElement(root, "testsuite", {"name": _clean(name), **counts})


def _failure(suite: xml.Element, path: str, item: ReportedFinding) -> None:
    finding = item.finding
    row, column = finding.span.line, finding.span.column + 1
    place = {"file": relative(path), "line": str(row), "column": str(column)}
    name = f"graphmend.{finding.code}"
    case = xml.SubElement(suite, "testcase", {"name": name, "classname": _clean(relative(path)), **place})
    failure = xml.SubElement(case, "failure", message=_clean(finding.message), type=finding.code)
    failure.text = _clean("\n".join([f"line {row}, column {column}: {finding.message}", *finding.evidence]))


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
