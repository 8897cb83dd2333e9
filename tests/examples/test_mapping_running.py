"""The Widget provider without code as a process on a real API server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from examples.test_conformance import WIDGETS as KIT_FILES
from examples.test_conformance import check
from kubefoundry_local.suite import Suite
from kubefoundry_sdk import Provider
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._functions.main import installed
from kubefoundry_sdk._functions.mapping.provider import load
from support.deployments import GPU, model_deployment
from support.kit_planes import kept_planes
from support.suites import install_crd
from support.waiting import message, reason, serves, until, until_deployment
from support.widgets import EXAMPLES, SPEC, WIDGETS, says

pytestmark = [pytest.mark.integration]

MAPPING = EXAMPLES / "mapping" / "widgets.yaml"
PROGRAM = str(Path(sys.executable).parent / "kubefoundry-provider-functions")


def start(suite: Suite, file: Path) -> None:
    """Install and start core and the provider of a mapping, whose file is not mounted here."""
    provider: Provider = load(file, {})
    documents: list[dict[str, Any]] = installed(provider, "reg/img:1", [], str(file))
    for document in documents:
        if document["kind"] == "Deployment":
            [container] = document["spec"]["template"]["spec"]["containers"]
            container["command"] = [PROGRAM, f"--mapping={file}"]
    install_crd(suite, yaml.safe_load((EXAMPLES / "provider" / "widgets.crd.yaml").read_text()))
    suite.install("widgets", documents=documents)
    suite.start("core", "widgets")


async def create(api: Client, namespace: str, name: str = "m", **spec: Any) -> Object:
    body = model_deployment(name, namespace, {**SPEC, **spec}, provider="widgets")
    return await api.create(MODEL_DEPLOYMENTS, body, manager="test")


async def test_provider_without_code_serves_and_cleans_up(fresh: Suite, api: Client, namespace: str) -> None:
    start(fresh, MAPPING)

    model = await create(api, namespace)
    widget = await until(api, WIDGETS, "m", namespace, lambda obj: obj)
    assert widget and widget["spec"]["model"] == GPU["model"]["id"]
    assert widget["metadata"]["ownerReferences"][0]["uid"] == model["metadata"]["uid"]

    await says(api, namespace, state="Serving", ready=1)
    running = await until_deployment(api, "m", namespace, serves)
    assert running["status"]["endpoint"] == {"service": "m", "port": 8000}

    await create(api, namespace, "refused", nodeSelector={"zone": "a"})
    refused = await until_deployment(
        api, "refused", namespace, lambda obj: reason(obj, "ProviderCompatible") == "Unsupported"
    )
    assert message(refused, "ProviderCompatible") == "Widgets has no place for nodeSelector: remove it"

    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=model["metadata"]["uid"])
    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    await until(api, WIDGETS, "m", namespace, lambda obj: obj is None)


async def test_model_that_exhausts_a_mapping_harms_no_other(
    fresh: Suite, api: Client, namespace: str, tmp_path: Path
) -> None:
    file = tmp_path / "mapping.yaml"
    exploding = "${spec.env.map(a, spec.env.map(b, a.name == b.name))[0][0] ? spec.env : omit}"
    file.write_text(MAPPING.read_text().replace("env: ${spec.env}", f'env: "{exploding}"'))
    start(fresh, file)

    await create(api, namespace, "large", env=[{"name": f"A{n}", "value": "x"} for n in range(200)])
    await create(api, namespace, env=[{"name": "A", "value": "x"}])

    failed = await until_deployment(
        api, "large", namespace, lambda obj: reason(obj, "ResourceCreated") == "ProviderError"
    )
    assert message(failed, "ResourceCreated") == (
        "Provider widgets has an error: object.spec.env: it takes more than 5000 steps; report it to its authors, "
        "its log has more"
    )
    await until(api, WIDGETS, "m", namespace, lambda obj: obj)
    await says(api, namespace, state="Serving", ready=1)
    assert await until_deployment(api, "m", namespace, serves)


@pytest.mark.apart
def test_provider_without_code_passes_the_kit(tmp_path: Path) -> None:
    file = tmp_path / "manifest.yaml"
    file.write_text(yaml.safe_dump_all(installed(load(MAPPING, {}), "reg/img:1", [], str(MAPPING))))
    subject = ["--manifest", str(file), "--command", f"{PROGRAM} --mapping {MAPPING}"]

    with kept_planes():
        code, failed, passed = check(["provider", *subject, *KIT_FILES], tmp_path / "report.json")

    assert (code, failed) == (0, [])
    assert passed >= 22
