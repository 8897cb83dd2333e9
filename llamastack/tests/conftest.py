"""Makes small typed CRs for tables of cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kubefoundry_llamastack.api.spec import Spec
from kubefoundry_llamastack.render.request import Distribution

Make = Callable[..., Distribution]


@pytest.fixture
def make() -> Make:
    """Make a CR. Keywords are fields of spec.server."""

    def made(spec: dict[str, Any] | None = None, **server: Any) -> Distribution:
        whole = {**(spec or {}), "server": {"distribution": {"image": "example.com/stack:1"}, **server}}
        return Distribution("chat", "team", "uid-1", 1, Spec.model_validate(whole))

    return made
