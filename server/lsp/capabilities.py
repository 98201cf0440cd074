"""What the client can do, asked once. Whatever a client does not declare it does not get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lsprotocol import types

from graphmend.server.lsp.command_names import SHOW_RULE


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The client's abilities that change what the server does."""

    pull_diagnostics: bool = False
    """Whether the client asks for diagnostics, and asks again when it is told to. One that cannot be told would show
    the result of a check at its next edit only: it is sent them."""
    related_information: bool = False
    code_description: bool = False
    diagnostic_data: bool = False
    diagnostic_versions: bool = False
    action_literals: bool = False
    action_resolve: bool = False
    action_preferred: bool = False
    action_disabled: bool = False
    versioned_edits: bool = False
    change_annotations: bool = False
    apply_edit: bool = False
    markdown_hover: bool = False
    progress: bool = False
    configuration: bool = False
    watch_configuration: bool = False
    watch_files: bool = False
    refresh_lenses: bool = False
    told_of_checks: bool = False
    show_document: bool = False
    marks_llm_actions: bool = False
    explain_command: str | None = None
    """The client's or server's command that shows a rule's documentation, with its code as argument."""
    manages_trust: bool = False
    """Whether the client tells the user what to do where a workspace is not trusted."""

    @classmethod
    def of(cls, client: types.ClientCapabilities) -> Capabilities:
        published = _at(client, "text_document.publish_diagnostics")
        action = _at(client, "text_document.code_action")
        edit = _at(client, "workspace.workspace_edit")
        versioned = bool(_at(edit, "document_changes"))
        resolvable = _at(action, "resolve_support.properties") or ()
        formats = _at(client, "text_document.hover.content_format") or ()
        return cls(
            pull_diagnostics=_at(client, "text_document.diagnostic") is not None
            and bool(_at(client, "workspace.diagnostics.refresh_support")),
            related_information=bool(_either(client, "related_information")),
            code_description=bool(_either(client, "code_description_support")),
            diagnostic_data=bool(_either(client, "data_support")),
            diagnostic_versions=bool(_at(published, "version_support")),
            action_literals=_at(action, "code_action_literal_support") is not None,
            action_resolve="edit" in resolvable and bool(_at(action, "data_support")),
            action_preferred=bool(_at(action, "is_preferred_support")),
            action_disabled=bool(_at(action, "disabled_support")),
            versioned_edits=versioned,
            change_annotations=versioned and _at(edit, "change_annotation_support") is not None,
            apply_edit=bool(_at(client, "workspace.apply_edit")),
            markdown_hover=bool(formats) and types.MarkupKind.Markdown in formats,
            progress=bool(_at(client, "window.work_done_progress")),
            configuration=bool(_at(client, "workspace.configuration")),
            watch_configuration=bool(_at(client, "workspace.did_change_configuration.dynamic_registration")),
            watch_files=bool(_at(client, "workspace.did_change_watched_files.dynamic_registration")),
            refresh_lenses=bool(_at(client, "workspace.code_lens.refresh_support")),
            told_of_checks=_ours(client.experimental, "checked") is True,
            explain_command=_explain_command(client),
            manages_trust=_ours(client.experimental, "managesTrust") is True,
            show_document=bool(_at(client, "window.show_document.support")),
            marks_llm_actions=types.CodeActionTag.LlmGenerated in (_at(action, "tag_support.value_set") or ()),
        )


def _ours(experimental: Any, name: str) -> Any:
    """What a client says of itself that is ours alone, such as whether it asks for `graphmend/checked`."""
    ours = experimental.get("graphmend") if isinstance(experimental, Mapping) else None
    return ours.get(name) if isinstance(ours, Mapping) else None


def _explain_command(client: types.ClientCapabilities) -> str | None:
    own = _ours(client.experimental, "explainCommand")
    if isinstance(own, str):
        return own
    return SHOW_RULE if _at(client, "window.show_document.support") else None


def _at(node: Any, path: str) -> Any:
    """The attribute at the end of a dotted path; None where any part is missing."""
    for name in path.split("."):
        if node is None:
            return None
        node = getattr(node, name, None)
    return node


def _either(client: types.ClientCapabilities, name: str) -> Any:
    """A capability that a client may declare for pushed or, since protocol 3.18, for pulled diagnostics."""
    return _at(client, f"text_document.publish_diagnostics.{name}") or _at(client, f"text_document.diagnostic.{name}")
