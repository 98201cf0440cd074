"""The scripted model server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .scripted import Server, serving


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        yield made
