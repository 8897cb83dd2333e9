"""Whether the installed CRD can be written."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kubefoundry_kuberay.probe import probe
from kubefoundry_kuberay.provider import provider
from kubefoundry_kuberay.settings import Settings
from kubefoundry_sdk._provider.upstream_kind import Schema, UnsupportedSchema
from support.upstream import UpstreamCRD, crds, requires_shared, standin

PODS = frozenset({"image volumes", "resource claims"})
SUSPENDS = {"v1.1.1": False, "v1.3.2": False, "v1.4.2": False, "v1.6.2": False, "v1.7.0": True}


@pytest.mark.upstream
@requires_shared
@pytest.mark.parametrize("crd", crds("kuberay"), ids=str)
def test_real_crds(crd: UpstreamCRD) -> None:
    used = f"ray.io/{crd.storage_version}"
    features, lost = set(PODS), []
    if SUSPENDS[crd.name]:
        features.add("suspend")
    else:
        lost.append("scaling to 0 replicas")
    if crd.name == "v1.1.1":
        features -= PODS
        lost += [
            "images in model.storage.volumes or podTemplate.spec.volumes",
            "podTemplate.spec.resourceClaims",
        ]

    assert probe(crd.document) == Schema(used, frozenset(features), tuple(lost))


def stub_crd() -> dict[str, Any]:
    return copy.deepcopy(standin("kuberay").document)


def test_stand_in_has_all_that_is_written() -> None:
    crd = stub_crd()

    assert probe(crd) == Schema("ray.io/v1", frozenset({"suspend"}) | PODS)
    assert provider(Settings()).upstream.crd == crd["metadata"]["name"]


@pytest.mark.parametrize("change", [{"name": "v1alpha1"}, {"served": False}])
def test_without_a_served_v1_nothing_is_written(change: dict[str, Any]) -> None:
    crd = stub_crd()
    crd["spec"]["versions"][0] |= change

    assert probe(crd) == UnsupportedSchema(("ray.io/v1",))


def test_missing_fields_are_named() -> None:
    crd = stub_crd()
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    del spec["serveConfigV2"]
    del spec["rayClusterConfig"]["properties"]["workerGroupSpecs"]["items"]["properties"]["replicas"]

    assert probe(crd) == UnsupportedSchema(
        ("spec.serveConfigV2", "spec.rayClusterConfig.workerGroupSpecs.replicas")
    )


def test_crd_without_a_schema_lacks_everything() -> None:
    crd = {"spec": {"versions": [{"name": "v1", "served": True}]}}

    probed = probe(crd)

    assert isinstance(probed, UnsupportedSchema)
    assert "spec.serveConfigV2" in probed.missing
