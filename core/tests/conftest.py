"""Fixtures of several modules."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from support.claims import Rig


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    it = Rig()
    async with it.client:
        yield it
