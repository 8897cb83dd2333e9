"""The charts as Argo CD installs them: `helm template`, then a server-side apply by Argo CD's field manager."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from kubefoundry_core.webhook_configurations import CONFIGURATION, MUTATING, VALIDATING
from kubefoundry_local.ports import free_port
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster.client import Client
from support.admission import until_refused_by_webhook
from support.deployed_processes import COMPONENTS, run_processes
from support.helm import CHART, CRD_CHART, Helm, build, with_local_webhooks
from support.model_writes import log_size, upstream_writes
from support.serving_models import create_model, until_running
from support.suites import upstream_suite
from support.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.apart]

SYSTEM: Final = "kubefoundry-system"
MANAGER: Final = "argocd-controller"
APPLY: Final = (
    "apply",
    "--server-side",
    "--show-managed-fields",
    "--force-conflicts",
    f"--field-manager={MANAGER}",
    "-f",
    "-",
)


@pytest.fixture
def suite(tmp_path: Path) -> Iterator[Suite]:
    """Upstream CRDs and simulated operators; the charts install the rest."""
    with upstream_suite(tmp_path) as running:
        yield running


async def test_second_sync_finds_no_difference_and_writes_nothing(
    suite: Suite, api: Client, namespace: str, tmp_path: Path
) -> None:
    port = free_port()
    objects = rendered(Helm(build(), tmp_path), tmp_path, port)
    suite.plane.kubectl("create", "namespace", SYSTEM)
    for chart in objects:
        applied(suite, chart)
        suite.plane.kubectl("wait", "--for=condition=Established", "crd", "--all")
    everything = [obj for chart in objects for obj in chart]
    run_processes(suite, deployments_of(everything), SYSTEM, port, {})
    await create_model(api, namespace, "m", "kaito")
    await until_running(api, namespace, ["m"])
    for kind in (MUTATING, VALIDATING):
        await until(api, kind, CONFIGURATION, None, has_bundle)
    before, start = live(suite, everything), log_size(suite)

    predicted = applied(suite, everything, "--dry-run=server")
    written = applied(suite, everything)

    assert differences(predicted, before) == {}
    assert differences(written, before) == {}
    assert missing_fields(everything, before) == {}
    assert upstream_writes(suite, namespace, start, ["m"]) == []
    await until_refused_by_webhook(api, namespace)


def rendered(helm: Helm, folder: Path, port: int) -> list[list[Object]]:
    """Return the objects of both charts with the annotation by which Argo CD finds them."""
    charts = [helm.rendered(CRD_CHART, namespace=SYSTEM)]
    charts.append(helm.rendered(with_local_webhooks(CHART, folder, port), namespace=SYSTEM))
    for obj in (obj for chart in charts for obj in chart):
        group, _, _ = obj["apiVersion"].rpartition("/")
        meta = obj["metadata"]
        tracking = f"kubefoundry:{group}/{obj['kind']}:{meta.get('namespace', SYSTEM)}/{meta['name']}"
        meta["annotations"] = {
            **(meta.get("annotations") or {}),
            "argocd.argoproj.io/tracking-id": tracking,
        }
    return charts


def deployments_of(objects: list[Object]) -> dict[str, Object]:
    named = {obj["metadata"]["name"]: obj for obj in objects if obj["kind"] == "Deployment"}
    return {name: named[f"kubefoundry-{name}"] for name in COMPONENTS}


def has_bundle(configuration: Object | None) -> bool:
    webhooks = (configuration or {}).get("webhooks", [])
    return bool(webhooks) and all(webhook["clientConfig"].get("caBundle") for webhook in webhooks)


def applied(suite: Suite, objects: list[Object], *flags: str) -> dict[str, Object]:
    """Apply the objects as Argo CD does, and return those of the response."""
    return by_name(
        items(suite.plane.kubectl(*APPLY, *flags, "-o", "json", input=json.dumps(listed(objects))).stdout)
    )


def live(suite: Suite, objects: list[Object]) -> dict[str, Object]:
    """Return these objects as they are stored."""
    text = suite.plane.kubectl(
        "get", "-f", "-", "-o", "json", "--show-managed-fields", input=json.dumps(listed(objects))
    )
    return by_name(items(text.stdout))


def listed(objects: list[Object]) -> Object:
    return {"apiVersion": "v1", "kind": "List", "items": objects}


def items(text: str) -> list[Object]:
    parsed: Object = json.loads(text)
    return list(parsed["items"])


def by_name(objects: list[Object]) -> dict[str, Object]:
    """Return the objects by kind and name, without their status, which the cluster's own controllers write."""
    return {f"{obj['kind']}/{obj['metadata']['name']}": without_status(obj) for obj in objects}


def without_status(obj: Object) -> Object:
    """Remove the status, the resource version, and the owners of fields of the status."""
    meta = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
    meta["managedFields"] = [entry for entry in meta["managedFields"] if entry.get("subresource") != "status"]
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": meta}


def differences(found: dict[str, Object], expected: dict[str, Object]) -> dict[str, tuple[Any, Any]]:
    """Return the objects that differ, with the owners of fields and the times of their writes."""
    assert found.keys() == expected.keys()
    return {name: (found[name], expected[name]) for name in found if found[name] != expected[name]}


def missing_fields(objects: list[Object], stored: dict[str, Object]) -> dict[str, list[str]]:
    """Return the fields that are stored with another value than rendered, which a diff without the server shows."""
    named = {f"{obj['kind']}/{obj['metadata']['name']}": obj for obj in objects}
    found = {name: list(other_fields(obj, stored[name], "")) for name, obj in named.items()}
    return {name: paths for name, paths in found.items() if paths}


def other_fields(wanted: Any, stored: Any, path: str) -> Iterator[str]:
    if isinstance(wanted, dict) and isinstance(stored, dict):
        for key, value in wanted.items():
            yield from other_fields(value, stored.get(key), f"{path}.{key}")
    elif isinstance(wanted, list) and isinstance(stored, list) and len(wanted) == len(stored):
        for index, (mine, theirs) in enumerate(zip(wanted, stored, strict=True)):
            yield from other_fields(mine, theirs, f"{path}[{index}]")
    elif wanted != stored:
        yield f"{path}: {wanted!r}, stored {stored!r}"
