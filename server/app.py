"""The server put together: pygls, one session, and every feature that the client can use."""

from __future__ import annotations

from lsprotocol import types

import graphmend
from graphmend.server.analyses.document_analysis import Check
from graphmend.server.diagnostics import pull
from graphmend.server.diagnostics.publish import Publisher
from graphmend.server.diagnostics.rendering import Renderer
from graphmend.server.diagnostics.workspace_diagnostics import Workspace
from graphmend.server.features import code_lens, commands, configuration, hover, notebook_sync, sync, trust
from graphmend.server.features.ask import Ask
from graphmend.server.features.verify import Verify
from graphmend.server.lsp import convert
from graphmend.server.lsp.capabilities import Capabilities
from graphmend.server.lsp.language_server import Server
from graphmend.server.lsp.protocol import Protocol
from graphmend.server.mends import code_actions
from graphmend.server.session import Session


def create(check: Check | None = None) -> tuple[Server, Session]:
    """A server that waits for `initialize`. `check` stands in for the analysis, in tests."""
    server = Server(
        "graphmend", graphmend.__version__, protocol_cls=Protocol, notebook_document_sync=notebook_sync.OPTIONS
    )
    session = Session(server, check)
    renderer = Renderer(session)
    publisher = Publisher(session, renderer)
    verify = Verify(server, session)
    workspace = Workspace(server, session)
    session.workspace = workspace.surroundings
    session.changed = publisher.publish_again
    session.all_changed = publisher.publish_all
    session.check = verify.saved
    session.recall = verify.recall

    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        session.client.capabilities = Capabilities.of(params.capabilities)
        for folder in _folders(params):
            session.folders.add(convert.path_of(folder.uri), folder.uri)
        session.trusted = trust.initial(params.initialization_options)
        configuration.initial(session, params.initialization_options)
        _register(server, session, workspace, renderer)

    @server.feature(types.INITIALIZED)
    def initialized(_: types.InitializedParams) -> None:
        if not session.client.capabilities.pull_diagnostics:  # too late to be announced: whoever asks is answered
            pull.register(server, session, renderer)
        session.spawn(configuration.initialized(session, workspace))

    sync.register(server, session, publisher, workspace)
    configuration.register(server, session, workspace)
    notebook_sync.register(server, session, publisher)
    trust.register(server, session)
    commands.register(server, session, verify, Ask(server, session))
    return server, session


def _register(server: Server, session: Session, workspace: Workspace, renderer: Renderer) -> None:
    """The features that depend on what the client can do."""
    code_actions.register(server, session)
    code_lens.register(server, session)
    hover.register(server, session)
    if session.client.capabilities.pull_diagnostics:
        pull.register(server, session, renderer)
        workspace.register()


def _folders(params: types.InitializeParams) -> list[types.WorkspaceFolder]:
    """The workspace folders, however old the client's way to name them."""
    if params.workspace_folders:
        return list(params.workspace_folders)
    uri = params.root_uri or (convert.uri_of(params.root_path) if params.root_path else None)
    return [types.WorkspaceFolder(uri, uri)] if uri else []
