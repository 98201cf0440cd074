"""Neovim 0.7 and 0.11 with editors/nvim: findings, mend by typed keys, lens, check on save, commands, trust."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pynvim = pytest.importorskip("pynvim")

ROOT = Path(__file__).resolve().parents[2]

#: An interpreter with torch and graphmend.
PYTHON = os.environ.get("GRAPHMEND_PYTHON", str(ROOT / ".venv/bin/python"))

NVIM = ROOT / "editors/nvim"

#: The configurations that the documentation shows: the whole one, and the one without the Lua file for older Neovims.
DOCUMENTED = re.findall(r"```lua\n(.*?)```", (ROOT / "docs/editors.md").read_text("utf-8"), re.DOTALL)

#: Two, three and four bytes before a finding: columns in bytes, UTF-16 and code points all differ.
NET = """\
import torch
from torch import Tensor, nn


class Net(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        name = "é€😀"; print(name)
        return x * 2


net = torch.compile(Net())


def example_inputs():
    return [(torch.ones(2, 4),)]
"""


NEOVIMS = [
    path
    for path in (shutil.which("nvim", path="/usr/bin"), str(Path(sys.prefix) / "bin/nvim"))
    if path and os.path.exists(path)
]
LINE = NET.splitlines().index('        name = "é€😀"; print(name)')


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """A file with one finding that can be mended safely, in a project."""
    (tmp_path / "pyproject.toml").write_text("")
    file = tmp_path / "net.py"
    file.write_text(NET, encoding="utf-8")
    return file


class Editor:
    """A Neovim with GraphMend set up, and what a user sees of it."""

    def __init__(self, nvim: Any) -> None:
        self.nvim = nvim

    def setup(self, trusted: Path | None = None, **settings: Any) -> None:
        options = {
            "cmd": [PYTHON, "-m", "graphmend", "server"],
            "trusted": [str(trusted)] if trusted else [],
            "settings": {"interpreter": PYTHON, **settings},
        }
        self.nvim.command(f"set runtimepath^={NVIM}")
        self.run_lua("require('graphmend').setup(...)", options)

    def run_lua(self, text: str, *arguments: Any) -> None:
        """Runs what stands in a user's configuration."""
        self.nvim.command("filetype on")
        self.nvim.exec_lua("messages = {}; vim.notify = function(m) table.insert(messages, m) end")
        self.nvim.exec_lua(text, *arguments)

    def edit(self, file: Path) -> None:
        self.nvim.command(f"edit {file}")

    @property
    def findings(self) -> list[tuple[int, int, str]]:
        found = self.nvim.exec_lua("return vim.diagnostic.get(0)")
        return [(d["lnum"], d["col"], str(d.get("code"))) for d in found if d["source"] == "graphmend"]

    @property
    def lenses(self) -> list[str]:
        found = self.nvim.exec_lua("return vim.lsp.codelens.get(0)")
        return [lens["command"]["title"] for lens in found if lens.get("command")]

    @property
    def messages(self) -> list[str]:
        return list(self.nvim.exec_lua("return messages"))

    @property
    def text(self) -> str:
        return "\n".join(self.nvim.current.buffer[:])


def until(what: str, ask: Callable[[], Any], seconds: float = 20) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := ask():
            return found
        time.sleep(0.03)
    raise AssertionError(f"not within {seconds} s: {what}")


@pytest.fixture(params=NEOVIMS, ids=lambda path: "apt" if path.startswith("/usr") else "pip")
def editor(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Editor]:
    for kind in ("CONFIG", "DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path / "xdg" / kind))
    nvim = pynvim.attach("child", argv=[request.param, "--embed", "--headless", "-u", "NONE", "-i", "NONE", "-n"])
    editor = Editor(nvim)
    yield editor
    print("messages:", editor.messages, "\nfindings:", editor.findings, "\nlenses:", editor.lenses, "\n" + editor.text)
    with contextlib.suppress(OSError, EOFError):  # it is gone before it answers
        nvim.command("qa!")


def test_a_finding_stands_in_the_right_column(editor: Editor, net: Path) -> None:
    editor.setup()
    editor.edit(net)
    ((line, column, code),) = until("a finding", lambda: editor.findings)
    before = NET.splitlines()[LINE].partition("print")[0]
    assert (line, column, code) == (LINE, len(before.encode()), "GM201")  # Neovim counts bytes


def test_a_mend_chosen_with_keys_changes_the_text_and_clears_the_finding(editor: Editor, net: Path) -> None:
    editor.setup()
    editor.nvim.command("nnoremap ga <cmd>lua vim.lsp.buf.code_action()<cr>")
    editor.edit(net)
    ((line, column, _),) = until("a finding", lambda: editor.findings)
    editor.nvim.funcs.cursor(line + 1, column + 1)
    editor.nvim.input("ga")
    until("the menu", lambda: editor.nvim.api.get_mode()["blocking"] or editor.nvim.api.get_mode()["mode"] != "n")
    editor.nvim.input("1<CR>")
    until("the mend", lambda: 'name = "é€😀"; emit(print, name)' in editor.text)
    until("no finding", lambda: not editor.findings)


def test_the_whole_file_is_mended_by_command(editor: Editor, net: Path) -> None:
    editor.setup()
    editor.edit(net)
    until("a finding", lambda: editor.findings)
    editor.nvim.command("GraphMend mend")
    until("the mend", lambda: "emit(print, name)" in editor.text)


def test_a_rule_is_explained(editor: Editor, net: Path) -> None:
    editor.setup()
    editor.edit(net)
    ((line, _, _),) = until("a finding", lambda: editor.findings)
    editor.nvim.funcs.cursor(line + 1, 1)
    editor.nvim.command("GraphMend explain")
    until("a window", lambda: any("Why it breaks" in "\n".join(w.buffer[:]) for w in editor.nvim.windows))


def test_a_project_that_is_not_trusted_is_not_run(editor: Editor, net: Path) -> None:
    net.write_text(NET + "\nimport pathlib\npathlib.Path(__file__ + '.ran').touch()\n", encoding="utf-8")
    editor.setup(verify={"mode": "onSave"})
    editor.edit(net)
    until("a finding", lambda: editor.findings)
    editor.nvim.command("write")
    editor.nvim.command("GraphMend verify")
    until("a refusal", lambda: any("trust" in message for message in editor.messages))
    assert not Path(f"{net}.ran").exists()


def test_a_check_by_command_changes_the_lens(editor: Editor, net: Path) -> None:
    editor.setup(trusted=net.parent)
    editor.edit(net)
    until("the lens", lambda: "1 graph break - Verify" in editor.lenses)
    editor.nvim.funcs.cursor(LINE + 1, 1)
    editor.nvim.command("GraphMend verify")
    until("the outcome", lambda: any("Net: 1 graph break" in message for message in editor.messages), 90)
    until("the lens", lambda: any("verified on" in title for title in editor.lenses))


def test_saving_checks_where_that_is_switched_on(editor: Editor, net: Path) -> None:
    editor.setup(trusted=net.parent, verify={"mode": "onSave"})
    editor.edit(net)
    until("a finding", lambda: editor.findings)
    editor.nvim.command("GraphMend mend")
    until("the mend", lambda: "emit(print, name)" in editor.text)
    editor.nvim.command("write")
    until("the lens", lambda: any(title.startswith("1 graph, verified on") for title in editor.lenses), 90)


def test_the_server_comes_back(editor: Editor, net: Path) -> None:
    editor.setup()
    editor.edit(net)
    until("a finding", lambda: editor.findings)
    clients = "return #(vim.lsp.get_clients or vim.lsp.get_active_clients)()"
    editor.nvim.command("GraphMend restart")
    until("the end of the first", lambda: editor.nvim.exec_lua(clients) == 0)
    until("a finding", lambda: editor.nvim.exec_lua(clients) == 1 and editor.findings)


def test_the_file_is_checked_by_command(editor: Editor, net: Path) -> None:
    editor.setup(trusted=net.parent)
    editor.edit(net)
    until("a finding", lambda: editor.findings)
    editor.nvim.command("GraphMend verify file")
    until(
        "the outcome", lambda: any(re.search(r"[Nn]et: 1 graph break on", message) for message in editor.messages), 90
    )


def test_the_lens_of_a_line_is_run_once_the_project_is_trusted(editor: Editor, net: Path) -> None:
    editor.setup()
    editor.edit(net)
    until("the lens", lambda: "1 graph break - Verify" in editor.lenses)
    editor.nvim.funcs.cursor(NET.splitlines().index("class Net(nn.Module):") + 1, 1)
    editor.nvim.command("GraphMend lens")
    until("a refusal", lambda: "nothing of this workspace is run" in editor.nvim.funcs.execute("messages"))
    assert editor.lenses == ["1 graph break - Verify"]
    editor.nvim.command("GraphMend trust")
    until("the trust", lambda: any(f"{net.parent} may be run" in message for message in editor.messages))
    editor.nvim.command("GraphMend lens")
    until("the check", lambda: any("verified on" in title for title in editor.lenses), 90)


def test_commands_are_completed(editor: Editor) -> None:
    editor.setup()
    names = editor.nvim.funcs.getcompletion("GraphMend ", "cmdline")
    assert names == ["explain", "lens", "mend", "restart", "trust", "verify"]
    assert editor.nvim.funcs.getcompletion("GraphMend verify ", "cmdline") == ["file"]


def test_a_server_that_cannot_be_run_is_told_of_once_with_what_to_do(editor: Editor, net: Path) -> None:
    editor.nvim.command(f"set runtimepath^={NVIM}")
    editor.run_lua("require('graphmend').setup({ cmd = { '/no/such/graphmend', 'server' } })")
    editor.edit(net)
    editor.nvim.command("edit!")
    (message,) = editor.messages
    assert "/no/such/graphmend cannot be run: pip install graphmend" in message


def test_a_function_may_connect_to_the_server(editor: Editor, net: Path) -> None:
    if not editor.nvim.funcs.has("nvim-0.8"):
        editor.run_lua("")
        pytest.skip("cmd may be a function since Neovim 0.8")
    editor.nvim.command(f"set runtimepath^={NVIM}")
    if editor.nvim.funcs.has("nvim-0.11"):
        connect = "function(dispatchers) return vim.lsp.rpc.start(COMMAND, dispatchers) end"
    else:
        connect = "function(dispatchers) return vim.lsp.rpc.start(COMMAND[1], { unpack(COMMAND, 2) }, dispatchers) end"
    lua = f"COMMAND = ...; require('graphmend').setup({{ cmd = {connect} }})"
    editor.run_lua(lua, [PYTHON, "-m", "graphmend", "server"])
    editor.edit(net)
    until("a finding", lambda: editor.findings)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command `graphmend` on the path, as `pip install graphmend` puts it there."""
    command = tmp_path / "bin/graphmend"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {PYTHON} -m graphmend "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")


def test_the_documented_configuration_works(installed: None, editor: Editor, net: Path) -> None:
    editor.nvim.command(f"set runtimepath^={NVIM}")
    editor.run_lua(DOCUMENTED[0].replace("/path/to/venv/bin/python", PYTHON).replace("~/src/models", str(net.parent)))
    editor.edit(net)
    until("a finding", lambda: editor.findings)
    editor.nvim.command("write")
    until("the check on save", lambda: any("verified on" in title for title in editor.lenses), 90)


def test_the_documented_configuration_without_commands_works(installed: None, editor: Editor, net: Path) -> None:
    if editor.nvim.funcs.has("nvim-0.11"):
        editor.nvim.command(f"set runtimepath^={NVIM}")
        editor.run_lua('vim.lsp.enable("graphmend")')
    else:
        editor.run_lua(DOCUMENTED[1])
    editor.edit(net)
    ((line, _, code),) = until("a finding", lambda: editor.findings)
    assert (line, code) == (LINE, "GM201")


@pytest.fixture(params=NEOVIMS, ids=lambda path: "apt" if path.startswith("/usr") else "pip")
def plugin(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Editor]:
    """A Neovim that finds the repository where a plugin manager leaves it, and starts with a configuration."""
    for kind in ("CONFIG", "DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path / "xdg" / kind))
    start = tmp_path / "xdg" / "DATA" / "nvim" / "site" / "pack" / "plugins" / "start"
    start.mkdir(parents=True)
    (start / "graphmend").symlink_to(ROOT)

    def begin(configuration: str) -> Editor:
        init = tmp_path / "init.lua"
        init.write_text(configuration)
        nvim = pynvim.attach(
            "child", argv=[request.param, "--embed", "--headless", "-u", str(init), "-i", "NONE", "-n"]
        )
        request.addfinalizer(lambda: _end(nvim))
        return Editor(nvim)

    return begin


def _end(nvim: Any) -> None:
    with contextlib.suppress(OSError, EOFError):
        nvim.command("qa!")


def test_the_repository_is_a_plugin(plugin: Callable[[str], Editor], net: Path) -> None:
    editor = plugin(f'require("graphmend").setup({{ cmd = {{ "{PYTHON}", "-m", "graphmend", "server" }} }})')
    editor.edit(net)
    until("a finding", lambda: editor.findings)


def test_a_plugin_that_was_not_set_up_tells_what_is_missing(plugin: Callable[[str], Editor], net: Path) -> None:
    """The command is there, sets up with the defaults, and says so where there is no `graphmend` to be run."""
    editor = plugin('messages = {}; vim.notify = function(m) table.insert(messages, m) end; vim.env.PATH = "/nowhere"')
    editor.edit(net)
    editor.nvim.command("GraphMend")
    until("a word", lambda: any("graphmend cannot be run: pip install" in message for message in editor.messages))
    assert editor.nvim.exec_lua("return vim.g.loaded_graphmend") is True


def test_health(plugin: Callable[[str], Editor]) -> None:
    editor = plugin(f'require("graphmend").setup({{ cmd = {{ "{PYTHON}", "-m", "graphmend", "server" }} }})')
    editor.nvim.command("checkhealth graphmend")
    said = "\n".join(editor.nvim.current.buffer[:])
    assert re.search(r"OK:? graphmend \d", said), said
    assert "no folder is trusted" in said
