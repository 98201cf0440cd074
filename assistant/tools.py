"""The four tools: `check`, `explain`, `mend`, `verify`. Knows no protocol; gives plain data or raises `Refused`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from graphmend.analysis.check import Result
from graphmend.analysis.finding import Finding
from graphmend.assistant import answers
from graphmend.assistant.answers import Data
from graphmend.assistant.folders import Folders, Outside
from graphmend.dynamo.report import Report
from graphmend.dynamo.requests import Declared, Request
from graphmend.dynamo.service import Service
from graphmend.model.gatekeeper import Gatekeeper, Passed
from graphmend.model.gates.text import Unfit
from graphmend.workspace import files
from graphmend.workspace.analysed_file import AnalysedFile, executable_for
from graphmend.workspace.config import Configurations
from graphmend.workspace.options import ConfigurationError

PAGE = 25
SECONDS = 120.0


class Refused(Exception):
    """A tool has no answer; the message is one line for the assistant."""


class Tools:
    """One session's tools. Analyses run in a thread, one at a time."""

    def __init__(self, folders: Folders, python: str | None = None) -> None:
        self._folders = folders
        self._python = python
        self._configurations = Configurations(origin="settings")
        self._service = Service()
        self._turn = asyncio.Lock()

    async def check(self, path: str, limit: int = PAGE, offset: int = 0) -> Data:
        async with self._turn:
            return await asyncio.to_thread(self._check, path, min(max(limit, 1), PAGE), max(offset, 0))

    def _check(self, path: str, limit: int, offset: int) -> Data:
        return answers.findings(self._offered(path), limit, offset)

    async def explain(self, path: str, key: str) -> Data:
        async with self._turn:
            return await asyncio.to_thread(self._explain, path, key)

    def _explain(self, path: str, key: str) -> Data:
        look = self._offered(path)
        return answers.explanation(look, _named(look.result, key))

    async def mend(self, path: str, key: str, unsafe: bool = False) -> Data:
        async with self._turn:
            return await asyncio.to_thread(self._mend, path, key, unsafe)

    def _mend(self, path: str, key: str, unsafe: bool) -> Data:
        look = self._offered(path)
        shown = self._folders.shown(look.result.source.path)
        return answers.diff(look, _named(look.result, key), shown, unsafe=unsafe)

    async def verify(self, path: str, function: str, replacement: str | None = None) -> Data:
        """Runs the user's code. Without a replacement: what TorchDynamo shows of the file's targets that lead there."""
        async with self._turn:
            file, result = await asyncio.to_thread(self._looked_at, path)
        found = [item for item in result.findings if item.function == function]
        if replacement is None:
            return _shown(await self._service.check(self._request(file)), function)
        if not found:
            raise Refused(f"no finding stands in {function}; check names the functions that have one")
        facts = result.facts(found[0])
        if facts is None:
            raise Refused(f"{function} is no function that can be replaced")

        async def verified(mended: str) -> Report:
            return await self._service.check(self._request(file, mended))

        keeper = Gatekeeper(result, found, facts, file.look, verified)
        passed: Passed | None = None
        with contextlib.suppress(Unfit):  # the gates tell of it
            passed = await keeper.judge(replacement)
        return answers.judgement(keeper.gates, passed)

    async def close(self) -> None:
        await self._service.close()

    def _offered(self, text: str) -> answers.Look:
        file, result = self._looked_at(text)
        return answers.Look(result, file.configuration["accept"])

    def _looked_at(self, text: str) -> tuple[AnalysedFile, Result]:
        """The file as it is on disk now."""
        try:
            path = self._folders.file(text)
            self._configurations.forget()
            file = AnalysedFile(path, self._configurations.of_file(path), self._python)
            source = file.source
        except (Outside, files.FileProblem, ConfigurationError) as problem:
            raise Refused(str(problem)) from None
        if source.tree is None and source.problem is not None:
            raise Refused(f"{text}:{source.problem.line}: does not parse: {source.problem.message}")
        return file, file.look(source)

    def _request(self, file: AnalysedFile, mended: str | None = None) -> Request:
        configuration, path = file.configuration, str(file.path)
        declared = tuple(
            Declared(e["target"], e.get("init", ""), e.get("inputs", "")) for e in configuration["targets"]
        )
        return Request(
            path=path,
            texts={path: file.source.text},
            mended=None if mended is None else {path: mended},
            confined=True,
            declared=declared,
            timeout=SECONDS,
            interpreter=executable_for(self._python, file.path),
            roots=(str(configuration.root),) if configuration.file is not None else (),
        )


def _named(result: Result, key: str) -> Finding:
    found = next((item for item in result.findings if item.key == key), None)
    if found is None:
        raise Refused("no finding of the file as it is now has this key; check again")
    return found


def _shown(report: Report, function: str) -> Data:
    """What a check shows, in our words, TorchDynamo's titles, names of the source, kinds and numbers: what the code
    printed or raised may be a secret, and stays here.
    """
    if report.problem is not None:
        raise Refused(report.bare or "nothing could be run")
    top = function.partition(".")[0]
    targets: Sequence[Data] = [
        {
            "name": target.name,
            "status": target.status,
            "problem": target.bare,
            "inputs": target.inputs,
            "graphs": target.graphs,
            "breaks": [{"line": b.span.line, "reason": b.gb_type, "gb_id": b.gb_id} for b in target.breaks],
        }
        for target in report.targets
    ]
    mine = [target for target in targets if target["name"].partition(".")[0] == top]
    return {"torch": report.torch, "targets": mine or list(targets)}
