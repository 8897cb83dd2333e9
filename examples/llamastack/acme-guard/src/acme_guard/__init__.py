"""A safety provider that refuses messages with words from a list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from acme_guard.config import Config
    from acme_guard.guard import Guard


async def get_provider_impl(config: Config, deps: dict[Any, Any]) -> Guard:
    from acme_guard.guard import Guard

    return Guard(config)
