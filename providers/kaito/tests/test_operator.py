"""The provisioning mode as KAITO's Deployment tells it: as KAITO's chart starts it, and otherwise."""

from __future__ import annotations

import pytest

from kubefoundry_kaito.operator import read
from kubefoundry_sdk._api.kinds import Object


def started(*arguments: str) -> Object:
    containers = [{"name": "proxy"}, {"name": "workspace", "args": list(arguments)}]
    return {"spec": {"template": {"spec": {"containers": containers}}}}


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        pytest.param(
            ["--feature-gates=vLLM=true,disableNodeAutoProvisioning=true"],
            {"provisioning": "byo"},
            id="gate on",
        ),
        pytest.param(
            ["--feature-gates=vLLM=true,disableNodeAutoProvisioning=false"],
            {"provisioning": "auto"},
            id="gate off",
        ),
        pytest.param(["--feature-gates=vLLM=true"], {"provisioning": "auto"}, id="KAITO's own default"),
        pytest.param(
            ["--feature-gates=disableNodeAutoProvisioning=false", "--node-provisioner=byo"],
            {"provisioning": "byo"},
            id="the provisioner before the gate",
        ),
        pytest.param(
            ["--feature-gates=disableNodeAutoProvisioning=true", "--node-provisioner=karpenter"],
            {"provisioning": "auto"},
            id="another provisioner before the gate",
        ),
        pytest.param(
            ["-feature-gates=disableNodeAutoProvisioning=true", "--node-provisioner="],
            {"provisioning": "byo"},
            id="an empty provisioner, one dash",
        ),
        pytest.param(["--leader-elect=true"], {}, id="something else of that name"),
        pytest.param([], {}, id="no flags"),
    ],
)
def test_what_the_flags_mean(arguments: list[str], reported: dict[str, str]) -> None:
    assert read(started(*arguments)) == reported
