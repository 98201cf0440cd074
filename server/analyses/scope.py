"""What the analysis of a document depends on besides its text."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from graphmend.analysis.settings import Settings

if TYPE_CHECKING:
    from graphmend.analysis.program.project import Project


class Scope:
    """What findings depend on besides a document's own text: the settings, and the modules around it."""

    def __init__(
        self,
        settings: Settings,
        project: Callable[[], Project | None] = lambda: None,
        accept: Collection[str] = frozenset(),
    ) -> None:
        self.settings = settings
        self.accept = accept
        """Kinds of differences with which a mend counts as safe."""
        self._project = project

    @property
    def project(self) -> Project | None:
        """The modules around, as they are on disk and in the editor now. Asked in the thread only."""
        return self._project()
