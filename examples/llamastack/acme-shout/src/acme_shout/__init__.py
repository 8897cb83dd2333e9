"""An inference provider that answers with what it was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from acme_shout.adapter import Adapter
    from acme_shout.config import Config


async def get_adapter_impl(config: Config, deps: dict[Any, Any]) -> Adapter:
    from acme_shout.adapter import Adapter

    return Adapter(config)
