"""The documentation link of each registration is a URL."""

from __future__ import annotations

import pytest

from kubefoundry_direct.provider import provider as direct
from kubefoundry_direct.settings import Settings as DirectSettings
from kubefoundry_dynamo.provider import provider as dynamo
from kubefoundry_dynamo.settings import Settings as DynamoSettings
from kubefoundry_kaito.provider import provider as kaito
from kubefoundry_kaito.settings import Settings as KaitoSettings
from kubefoundry_kuberay.provider import provider as kuberay
from kubefoundry_kuberay.settings import Settings as KubeRaySettings
from kubefoundry_sdk._provider.contract import Provider


@pytest.mark.parametrize(
    "provider",
    [kaito(KaitoSettings()), dynamo(DynamoSettings()), kuberay(KubeRaySettings()), direct(DirectSettings())],
    ids=lambda it: it.name,
)
def test_documentation_link_is_a_url(provider: Provider) -> None:
    assert provider.documentation.startswith("https://")
