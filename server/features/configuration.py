"""Settings as the client sends them: with `initialize`, on request for each folder, or pushed when they change."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from graphmend.server.diagnostics.workspace_diagnostics import Workspace
from graphmend.server.lsp import convert
from graphmend.server.session import CONFIGURATION_FILES, Session

log = logging.getLogger(__name__)

_LEVELS = {"error": logging.ERROR, "warning": logging.WARNING, "info": logging.INFO, "debug": logging.DEBUG}

_WATCHED = ("**/*.py", *(f"**/{name}" for name in CONFIGURATION_FILES))

#: What the client tells of itself when it creates, renames or deletes it, for clients that watch nothing.
_FILES = types.FileOperationRegistrationOptions(
    [
        types.FileOperationFilter(types.FileOperationPattern(glob, kind), scheme="file")
        for globs, kind in (
            (_WATCHED, types.FileOperationPatternKind.File),
            (("**",), types.FileOperationPatternKind.Folder),
        )
        for glob in globs
    ]
)


def register(server: LanguageServer, session: Session, workspace: Workspace) -> None:
    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def did_change(params: types.DidChangeConfigurationParams) -> None:
        if session.client.capabilities.configuration:
            await pull(session)
        else:
            session.folders.set_all(_section(params.settings))
        applied(session, workspace)

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    async def did_change_folders(params: types.DidChangeWorkspaceFoldersParams) -> None:
        for folder in params.event.removed:
            session.folders.remove(folder.uri)
        for folder in params.event.added:
            session.folders.add(convert.path_of(folder.uri), folder.uri)
        if session.client.capabilities.configuration:
            await pull(session)
        applied(session, workspace)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_files(params: types.DidChangeWatchedFilesParams) -> None:
        session.files_changed([convert.path_of(event.uri) for event in params.changes])

    @server.feature(types.WORKSPACE_DID_CREATE_FILES, _FILES)
    def did_create(params: types.CreateFilesParams) -> None:
        session.files_changed([convert.path_of(file.uri) for file in params.files])

    @server.feature(types.WORKSPACE_DID_RENAME_FILES, _FILES)
    def did_rename(params: types.RenameFilesParams) -> None:
        session.files_changed([convert.path_of(uri) for file in params.files for uri in (file.old_uri, file.new_uri)])

    @server.feature(types.WORKSPACE_DID_DELETE_FILES, _FILES)
    def did_delete(params: types.DeleteFilesParams) -> None:
        session.files_changed([convert.path_of(file.uri) for file in params.files])


async def initialized(session: Session, workspace: Workspace) -> None:
    """The conversation has begun: asks for settings, and to be told of changes."""
    can = session.client.capabilities
    if can.watch_configuration:
        session.client.register(
            types.Registration("graphmend-settings", types.WORKSPACE_DID_CHANGE_CONFIGURATION, {"section": "graphmend"})
        )
    if can.watch_files:
        watchers = [types.FileSystemWatcher(glob_pattern=pattern) for pattern in _WATCHED]
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers=watchers)
        session.client.register(
            types.Registration("graphmend-files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
        )
    if can.configuration:
        await pull(session)
        applied(session, workspace)
    else:
        workspace.configure()


def initial(session: Session, options: Any) -> None:
    """Settings from the initialization options: for clients that have no other way to send them."""
    if isinstance(options, Mapping) and "settings" in options:
        session.folders.initial = _section(options["settings"])
        session.folders.set_all(session.folders.initial)
    set_log_level(session)


def applied(session: Session, workspace: Workspace) -> None:
    """New settings hold: everything shown is made again."""
    set_log_level(session)
    workspace.configure()
    session.expire()


def set_log_level(session: Session) -> None:
    level = next(iter(session.folders)).settings.get("log-level", "info")
    logging.getLogger("graphmend").setLevel(_LEVELS[level])


async def pull(session: Session) -> None:
    """Asks the client for each folder's settings."""
    folders = list(session.folders)
    try:
        answers = await session.client.configuration([folder.uri for folder in folders])
    except Exception as error:  # the client refused: whatever was set before still holds
        log.warning("the client did not answer with settings: %s", error)
        return
    session.folders.set(zip(folders, answers, strict=False))


def _section(settings: Any) -> Any:
    """The `graphmend` section of what was sent, which may be the section itself or hold it."""
    return settings["graphmend"] if isinstance(settings, Mapping) and "graphmend" in settings else settings
