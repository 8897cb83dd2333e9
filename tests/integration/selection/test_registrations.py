"""Registrations of providers have what their readers need."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import PROVIDER_CONFIGS
from kubefoundry_sdk._cluster.client import Client
from support.kinds import UPSTREAM

pytestmark = pytest.mark.integration


async def test_registered_documentation_is_a_public_link(suite: Suite, api: Client) -> None:
    """Who reads a registration has no checkout beside it."""
    for name in UPSTREAM:
        link = urlsplit((await api.get(PROVIDER_CONFIGS, name))["spec"]["documentation"])

        assert (link.scheme, bool(link.hostname)) == ("https", True), name
