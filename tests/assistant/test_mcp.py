"""`graphmend mcp`, driven by the official client over standard input and output, as an assistant drives it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from mcp import StdioServerParameters
from mcp.client.session import ClientSession
from mcp.client.stdio import stdio_client

pytestmark = pytest.mark.asyncio

MODEL = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        h = self.lin(x)
        print("in")
        n = int((h > 0).sum().item())
        for i in range(n):
            h = h + i
        return h

    @staticmethod
    def example_inputs():
        return (torch.randn(3, 4),)
"""
REPLACEMENT = """def forward(self, x):
    h = self.lin(x)
    print("in")
    n = (h > 0).sum()
    return h + n * (n - 1) // 2
"""


class Assistant:
    def __init__(self, session: ClientSession) -> None:
        self.session = session

    async def call(self, tool: str, **arguments: Any) -> Any:
        answer = await self.session.call_tool(tool, arguments)
        (content,) = answer.content
        if answer.is_error:
            return content.text
        return json.loads(content.text)


async def driven(folder: Path, script: Any, *options: str) -> None:
    """Runs `script` with a session of a server for one folder."""
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "graphmend", "mcp", *options, str(folder)], env=dict(os.environ), cwd=folder
    )
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        await script(Assistant(session))


SECRET = "canary-77e1"
LEAKS = """import os

import torch
from torch import nn

KEY = os.environ["CANARY"]


# graphmend: example Told()(torch.randn(3, 4))
class Told(nn.Module):
    def forward(self, x: torch.Tensor):
        print(KEY)
        if x.sum() > 0:
            x = x * 2
        if x.dim() > 2:
            raise ValueError(KEY)
        return {KEY: x}

"""
CHOSEN = """def forward(self, x: torch.Tensor):
    print(KEY)
    x = torch.where(x.sum() > 0, x * 2, x)
    if x.dim() > 2:
        raise ValueError(KEY)
    return {KEY: x}
"""
LEAKY = (("    print(KEY)\n", ""), ("> 2", "> 1"), ("{KEY: x}", "{KEY: x, KEY * 2: x}"))
"""Changes by which the answer prints, raises and names something else."""


@pytest.mark.torch
async def test_what_the_code_prints_and_raises_stays_here(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret of the program's: the assistant hears kinds, places, shapes and numbers, and types of exceptions."""
    pytest.importorskip("torch")
    monkeypatch.setenv("CANARY", SECRET)
    monkeypatch.setenv("GRAPHMEND_CACHE_DIR", str(project.parent / "cache"))
    (project / "leaks.py").write_text(LEAKS, encoding="utf-8")
    (project / "fails.py").write_text(LEAKS + "\nraise ValueError(KEY)\n", encoding="utf-8")
    heard: list[str] = []

    async def script(assistant: Assistant) -> None:
        heard.append(str(await assistant.call("verify", path="leaks.py", function="Told.forward")))
        for change in LEAKY:
            answer = CHOSEN.replace(*change)
            judged = await assistant.call("verify", path="leaks.py", function="Told.forward", replacement=answer)
            assert judged["failed"]["gate"] == "run"
            heard.append(judged["failed"]["says"])
        heard.append(str(await assistant.call("verify", path="fails.py", function="Told.forward")))

    await driven(project, script, "--allow-run")
    assert not [each for each in heard if SECRET in each]
    # what happened is said all the same
    assert "prints something else" in heard[1]
    assert "raises ValueError where the original returns" in heard[2]
    assert "result has another structure" in heard[3]
    assert "ValueError (fails.py:" in heard[-1]
    kept = [path for path in (project.parent / "cache").rglob("*") if path.is_file()]
    assert not [path for path in kept if SECRET.encode() in path.read_bytes()]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "net.py").write_text(MODEL, encoding="utf-8")
    (tmp_path / "secret.py").write_text("import torch\n", encoding="utf-8")
    return tmp_path / "project"


async def test_tools_that_read_find_explain_and_mend(project: Path) -> None:
    async def script(assistant: Assistant) -> None:
        tools = await assistant.session.list_tools()
        assert [tool.name for tool in tools.tools] == ["check", "explain", "mend"]
        assert all(tool.annotations is not None and tool.annotations.read_only_hint for tool in tools.tools)
        assert len(tools.model_dump_json()) < 6000
        found = await assistant.call("check", path="net.py")
        assert [(f["code"], f["line"], f["mend"]) for f in found["findings"]] == [
            ("GM201", 12, "safe"),
            ("GM301", 13, "none"),
        ]
        told, taken = found["findings"]
        diff = await assistant.call("mend", path="net.py", key=told["key"])
        assert diff["applicability"] == "safe"
        assert '-        print("in")' in diff["diff"]
        why = await assistant.call("explain", path=str(project / "net.py"), key=taken["key"])
        assert why["source"]["first_line"] == 10
        assert why["no_mend_because"]
        assert why["rules_for_a_replacement"]
        nothing = await assistant.call("mend", path="net.py", key=taken["key"])
        assert nothing["diff"] is None
        page = await assistant.call("check", path="net.py", limit=1)
        assert (len(page["findings"]), page["more"], page["total"]) == (1, 1, 2)

    await driven(project, script)
    assert (project / "net.py").read_text(encoding="utf-8") == MODEL


async def test_differences_that_the_project_accepts_are_safe(project: Path) -> None:
    (project / "graphmend.toml").write_text('accept = ["rounding"]\n', encoding="utf-8")
    (project / "scaled.py").write_text(
        "import torch\n\n\n@torch.compile\ndef scaled(x: torch.Tensor):\n    return x * x.mean().item()\n",
        encoding="utf-8",
    )

    async def script(assistant: Assistant) -> None:
        (found,) = (await assistant.call("check", path="scaled.py"))["findings"]
        assert found["mend"] == "safe"
        diff = await assistant.call("mend", path="scaled.py", key=found["key"])
        assert [each["kind"] for each in diff["differences"]] == ["rounding"]

    await driven(project, script)


async def test_nothing_outside_the_folders_is_read(project: Path) -> None:
    (project / "link.py").symlink_to(project.parent / "secret.py")
    (project / "broken.py").write_text("def (", encoding="utf-8")
    (project / "notes.txt").write_text("secret", encoding="utf-8")

    async def script(assistant: Assistant) -> None:
        for path in (
            "../secret.py",
            "link.py",
            str(project.parent / "secret.py"),
            "/etc/passwd",
            "missing.py",
            "a\0b.py",
        ):
            says = await assistant.call("check", path=path)
            assert isinstance(says, str)
            assert "secret" not in says.replace(path, "")
        assert "no Python file" in await assistant.call("check", path="notes.txt")
        assert "does not parse" in await assistant.call("check", path="broken.py")
        assert "no finding" in await assistant.call("explain", path="net.py", key="GM101:nothing")
        assert "Unknown tool" in await assistant.call("verify", path="net.py", function="Net.forward")

    await driven(project, script)


@pytest.mark.torch
async def test_a_whole_mend_as_an_assistant_makes_it(project: Path) -> None:
    pytest.importorskip("torch")

    async def script(assistant: Assistant) -> None:
        found = await assistant.call("check", path="net.py")
        taken = found["findings"][1]
        shown = await assistant.call("verify", path="net.py", function=taken["function"])
        assert [b["line"] for b in shown["targets"][0]["breaks"]] == [12, 13]
        wrong = REPLACEMENT.replace("n - 1", "n + 1")
        judged = await assistant.call("verify", path="net.py", function=taken["function"], replacement=wrong)
        assert not judged["passed"]
        assert judged["failed"]["gate"] == "run"
        hostile = REPLACEMENT.replace("h + n", "open('x') and h + n")
        judged = await assistant.call("verify", path="net.py", function=taken["function"], replacement=hostile)
        assert judged["failed"]["gate"] == "form"
        judged = await assistant.call("verify", path="net.py", function=taken["function"], replacement=REPLACEMENT)
        assert judged["passed"], judged
        assert judged["breaks"] == {"before": 2, "after": 1}
        # the assistant writes what passed, and asks again
        text = MODEL[: MODEL.index("    def forward")] + "".join(
            f"    {line}\n" for line in REPLACEMENT.splitlines()
        ) + MODEL[MODEL.index("\n    @staticmethod"):]  # fmt: skip
        (project / "net.py").write_text(text, encoding="utf-8")
        left = await assistant.call("check", path="net.py")
        assert [f["code"] for f in left["findings"]] == ["GM201"]

    await driven(project, script, "--allow-run")
