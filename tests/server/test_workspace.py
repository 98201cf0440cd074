"""Folders and their settings, files that are not open, files that depend on others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from .conftest import Start
from .editor import Editor, capabilities

pytestmark = pytest.mark.asyncio

BREAKS = "import torch\n\n\n@torch.compile\ndef f(x):\n    if x.sum() > 0:\n        return x\n    return -x\n"
FINE = BREAKS.replace("x.sum() > 0", "x.shape[0] > 0")
WORKSPACE = {"settings": {"diagnosticMode": "workspace"}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "one.py").write_text(BREAKS)
    (tmp_path / "two.py").write_text(FINE)
    return tmp_path


async def pull(editor: Editor, known: dict[str, str] | None = None, token: str | None = None) -> Any:
    previous = [types.PreviousResultId(uri, value) for uri, value in (known or {}).items()]
    params = types.WorkspaceDiagnosticParams(previous, partial_result_token=token)
    return (await editor.client.workspace_diagnostic_async(params)).items


def watched(editor: Editor, path: Path) -> None:
    event = types.FileEvent(path.as_uri(), types.FileChangeType.Changed)
    editor.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))


async def test_files_that_are_not_open_are_pulled_with_result_ids(start: Start, folder: Path) -> None:
    editor = await start(client=capabilities(pull=True), options=WORKSPACE)
    (report,) = await pull(editor)
    assert (report.uri, len(report.items)) == ((folder / "one.py").as_uri(), 1)
    (same,) = await pull(editor, {report.uri: report.result_id})
    assert isinstance(same, types.WorkspaceUnchangedDocumentDiagnosticReport)
    (folder / "one.py").write_text(FINE)
    watched(editor, folder / "one.py")
    before = editor.refreshes
    await editor.until(lambda: editor.refreshes > before + 1)  # at once for the open files, later for these
    (gone,) = await pull(editor, {report.uri: report.result_id})
    assert gone.items == () or gone.items == []


async def test_partial_results_come_first(start: Start, folder: Path) -> None:
    editor = await start(client=capabilities(pull=True), options=WORKSPACE)
    (folder / "three.py").write_text(BREAKS)
    assert not await pull(editor, token="partial")
    values = [report.value for report in editor.progress if report.token == "partial"]
    found = [item["uri"] for value in values for item in value["items"]]
    assert found == [(folder / name).as_uri() for name in ("one.py", "three.py")]
    *_, last, end = [report.value for report in editor.progress if report.token != "partial"]
    assert (last["message"], end["kind"]) == ("3 of 3 files", "end")


async def test_files_that_are_not_open_are_published_to_clients_that_do_not_pull(start: Start, folder: Path) -> None:
    editor = await start(options=WORKSPACE)
    uri = (folder / "one.py").as_uri()
    await editor.until(lambda: [p for p in editor.published if p.uri == uri and len(p.diagnostics) == 1])


async def test_a_file_that_cannot_be_checked_hides_no_other(start: Start, folder: Path) -> None:
    (folder / "broken.py").write_text("def f(:\n")
    (folder / "data.py").write_text("x = 1  # " + "x" * 10_000_000)
    editor = await start(client=capabilities(pull=True), options=WORKSPACE)
    (report,) = await pull(editor)
    assert report.uri == (folder / "one.py").as_uri()
    assert len([line for line in editor.logged if "data.py" in line and "not analysed" in line]) == 1
    assert not [line for line in editor.logged if "could not be checked" in line]


async def test_a_folder_inside_another_is_checked_with_its_own_settings(start: Start, folder: Path) -> None:
    inside = folder / "inside"
    inside.mkdir()
    (inside / "three.py").write_text(BREAKS)
    editor = await start(client=capabilities(configuration=True, pull=True), folders=[])
    editor.settings = {inside.as_uri(): {"diagnosticMode": "workspace", "ignore": ["GM1"]}}
    editor.settings[None] = WORKSPACE["settings"]
    added = [types.WorkspaceFolder(place.as_uri(), place.name) for place in (folder, inside)]
    event = types.WorkspaceFoldersChangeEvent(added, [])
    editor.client.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(event))
    await editor.until(lambda: editor.refreshes > 1)
    (report,) = await pull(editor)
    assert (report.uri, len(report.items)) == ((folder / "one.py").as_uri(), 1)


async def test_the_check_of_a_folder_ends_with_the_server(start_process: Start, folder: Path) -> None:
    (folder / "long.py").write_text("\n\n".join(BREAKS.replace("def f(", f"def f{n}(") for n in range(20_000)))
    editor = await start_process(client=capabilities(pull=True), options=WORKSPACE)
    server = editor.server
    assert server is not None
    (child,) = await editor.until(lambda: children(server.pid))
    server.kill()
    await editor.until(lambda: not Path(f"/proc/{child}").exists())


def children(process: int) -> list[str]:
    """The processes that one started, where the system tells."""
    listing = Path(f"/proc/{process}/task/{process}/children")
    if not listing.exists():
        pytest.skip("needs /proc")
    return listing.read_text().split()


async def test_by_default_only_open_files_are_shown(start: Start, folder: Path) -> None:
    editor = await start(client=capabilities(pull=True))
    assert not await pull(editor)


async def test_nothing_of_the_workspace_is_imported(start_process: Start, folder: Path) -> None:
    for name in ("json", "graphmend", "pathspec", "sitecustomize", "torch"):
        (folder / f"{name}.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\n")
    editor = await start_process(client=capabilities(pull=True), options=WORKSPACE)
    uri = editor.open(folder / "one.py")
    assert len((await editor.pull(uri)).items) == 1
    await pull(editor)
    assert not (folder / "ran").exists()


async def test_folders_have_settings_of_their_own(start: Start, tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
        (folder / "f.py").write_text(BREAKS)
    editor = await start(client=capabilities(configuration=True), folders=[])
    editor.settings = {folders[0].as_uri(): {"ignore": ["GM1"]}, None: {}}
    added = [types.WorkspaceFolder(folder.as_uri(), folder.name) for folder in folders]
    event = types.WorkspaceFoldersChangeEvent(added, [])
    editor.client.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(event))
    first, second = (editor.open(folder / "f.py") for folder in folders)
    await editor.until(lambda: any(p.uri == second and p.diagnostics for p in editor.published))
    await editor.until(lambda: (mine := [p for p in editor.published if p.uri == first]) and not mine[-1].diagnostics)


async def test_a_projects_file_counts_until_it_changes(start: Start, folder: Path) -> None:
    project = folder / "pyproject.toml"
    project.write_text('[tool.graphmend]\nignore = ["GM1"]\n')
    editor = await start()
    uri = editor.open(folder / "one.py")
    assert await editor.diagnostics(uri) == []
    project.write_text("[tool.graphmend]\n")
    watched(editor, project)
    await editor.until(lambda: editor.published[-1].diagnostics)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"noSuchSetting": 1}, "no-such-setting"),
        ({"run": "sometimes"}, "run"),
        ({"verify": {"timeoutSeconds": "long"}}, "verify.timeout-seconds"),
        ({"select": "GM1"}, "select"),
        ("nonsense", "nonsense"),
    ],
)
async def test_a_wrong_setting_is_named_once_and_its_default_used(
    start: Start, folder: Path, settings: Any, complaint: str
) -> None:
    editor = await start(options={"settings": settings})
    uri = editor.open(folder / "one.py")
    assert len(await editor.diagnostics(uri)) == 1
    await editor.until(lambda: editor.logged)
    assert len([line for line in editor.logged if complaint in line and "\n" not in line]) == 1


USES = """\
import torch

from helper import positive


@torch.compile
def f(x):
    if positive(x):
        return x
    return -x
"""


async def test_saving_a_file_refreshes_those_that_depend_on_it(start: Start, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("def positive(x):\n    return x.shape[0] > 0\n")
    (tmp_path / "user.py").write_text(USES)
    editor = await start()
    user, helper = editor.open(tmp_path / "user.py"), editor.open(tmp_path / "helper.py")
    assert await editor.diagnostics(user) == []
    editor.replace(helper, "x.shape[0] > 0", "x.sum() > 0")
    editor.save(helper)
    await editor.until(lambda: [p for p in editor.published if p.uri == user][-1].diagnostics)


async def test_a_file_that_the_client_renames_or_deletes_is_looked_for_again(start: Start, tmp_path: Path) -> None:
    helper, other = tmp_path / "helper.py", tmp_path / "other.py"
    helper.write_text("def positive(x):\n    return x.sum() > 0\n")
    (tmp_path / "user.py").write_text(USES)
    editor = await start(client=capabilities(pull=True))
    uri = editor.open(tmp_path / "user.py")
    assert len((await editor.pull(uri)).items) == 1
    helper.rename(other)
    renamed = types.RenameFilesParams([types.FileRename(helper.as_uri(), other.as_uri())])
    editor.client.workspace_did_rename_files(renamed)
    assert not (await editor.pull(uri)).items
    editor.replace(uri, "from helper", "from other")
    assert len((await editor.pull(uri)).items) == 1
    other.unlink()
    editor.client.workspace_did_delete_files(types.DeleteFilesParams([types.FileDelete(other.as_uri())]))
    assert not (await editor.pull(uri)).items
    told = editor.result.capabilities.workspace.file_operations
    assert told.did_rename
    assert told.did_delete
