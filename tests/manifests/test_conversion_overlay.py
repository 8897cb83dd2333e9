"""The overlay that lets core convert agrees with core's manifest, certificate and paths."""

from __future__ import annotations

from pathlib import Path

import yaml

from kubefoundry_core.certificate_keeper import hosts_of
from kubefoundry_core.conversion import PATH, SERVICE
from kubefoundry_local.suite import manifest
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, PROVIDER_CONFIGS

OVERLAY = Path(__file__).resolve().parents[2] / "manifests" / "conversion"


def test_conversion_reaches_core_by_a_name_in_its_certificate() -> None:
    [patch] = yaml.safe_load((OVERLAY / "kustomization.yaml").read_text())["patches"]
    [operation] = yaml.safe_load(patch["patch"])
    client = operation["value"]["webhook"]["clientConfig"]
    service, role, _ = yaml.safe_load_all((OVERLAY / "conversion.yaml").read_text())
    [deployment] = [document for document in manifest("core") if document["kind"] == "Deployment"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    meta = service["metadata"]

    assert "caBundle" not in client
    assert client["service"] == {"name": SERVICE, "namespace": meta["namespace"], "path": PATH, "port": 443}
    assert meta["name"] == SERVICE
    assert f"{SERVICE}.{meta['namespace']}.svc" in hosts_of(meta["namespace"], [])
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert service["spec"]["selector"].items() <= labels.items()
    assert role["rules"] == [
        {
            "apiGroups": ["apiextensions.k8s.io"],
            "resources": ["customresourcedefinitions"],
            "resourceNames": [MODEL_DEPLOYMENTS.crd, PROVIDER_CONFIGS.crd],
            "verbs": ["patch"],
        }
    ]
