"""The upstream CRD is upgraded under serving objects: nothing is written, and their status is still read."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Iterator

import pytest

from kubefoundry_local.suite import PROBE, Suite
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from support.audit import AuditLog
from support.changes.seen import runs
from support.deployments import GPU, model_deployment
from support.edits import ADMIN, running
from support.events import until_event
from support.kinds import GRAPHS, UPSTREAM
from support.registrations import until_upstream
from support.restarts import restarted
from support.suites import install_crd, running_suite
from support.upgrades import bare, dynamo_stored_as_v1beta1, upgrade
from support.upstream import standin
from support.waiting import SECONDS, message, phase, reason, until, until_deployment

pytestmark = pytest.mark.integration

LISTED = Kind(GRAPHS.group, "v1beta1", GRAPHS.plural, GRAPHS.kind)
"""The shape in which the newer release stores."""


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """Core, the providers, and simulated operators with their webhooks, on stand-ins that tests replace."""
    folder = tmp_path_factory.mktemp("upgrade")
    with running_suite(folder, *UPSTREAM, simulator_flags=["--webhooks"]) as made:
        made.start("core", *UPSTREAM)
        yield made


@pytest.fixture
async def stored_as_v1beta1(suite: Suite, api: Client, namespace: str) -> AsyncIterator[AuditLog]:
    """A ModelDeployment `m` that Dynamo serves since before its CRD moved to v1beta1; requests since the move."""
    await running(api, namespace, GPU, "dynamo")
    requests = AuditLog(suite)
    await upgrade(api, dynamo_stored_as_v1beta1())
    await until_deployment(api, "m", namespace, lambda obj: api_version(obj) == LISTED.api_version)
    yield requests
    suite.plane.kubectl("delete", "modeldeployments", "--all", "-n", namespace)
    suite.plane.kubectl("delete", "crd", GRAPHS.crd)
    install_crd(suite, standin("dynamo").document)
    await until_upstream(api, "dynamo", "SchemaSupported")


async def test_moved_storage_version_writes_nothing(
    suite: Suite, api: Client, namespace: str, stored_as_v1beta1: AuditLog
) -> None:
    await until(
        api,
        PROVIDER_CONFIGS,
        "dynamo",
        None,
        lambda obj: (
            obj is not None
            and reason(obj, "UpstreamReady") == "SchemaSupported"
            and obj["status"]["upstreamCRDVersion"] == LISTED.api_version
        ),
    )
    moved = await api.get(MODEL_DEPLOYMENTS, "m", namespace)

    assert (phase(moved), moved["status"]["endpoint"]["service"]) == ("Running", "m-frontend")
    # another one is made in the new shape, and after it the old one has certainly been looked at
    await running(api, namespace, GPU, "dynamo", "later")
    assert await components(api, "later", namespace) == ["Frontend", "VllmWorker"]
    assert [line for line in writes(stored_as_v1beta1, namespace) if "/m?" in line] == []


async def test_drift_after_a_moved_storage_version_is_put_back(
    suite: Suite, api: Client, namespace: str, stored_as_v1beta1: AuditLog
) -> None:
    there = await api.get(LISTED, "m", namespace)
    [worker] = [
        index for index, part in enumerate(there["spec"]["components"]) if part["name"] == "VllmWorker"
    ]
    change = {"op": "replace", "path": f"/spec/components/{worker}/replicas", "value": 5}

    await api.json_patch(LISTED, "m", namespace, [change], manager=ADMIN)

    note = await until_event(api, namespace, "DriftDetected")
    assert "spec.services.VllmWorker.replicas" in note
    await until(
        api,
        LISTED,
        "m",
        namespace,
        lambda obj: obj is not None and obj["spec"]["components"][worker]["replicas"] == 1,
    )


async def test_unserved_version_leaves_labels_to_compare(
    suite: Suite, api: Client, namespace: str, stored_as_v1beta1: AuditLog
) -> None:
    alone = dynamo_stored_as_v1beta1()
    alone["spec"]["versions"][0]["served"] = False
    await upgrade(api, alone)
    with restarted(suite.components["dynamo"], {}):  # what it has looked at already is forgotten
        label = "/metadata/labels/kubefoundry.ai~1managed-by"

        await api.json_patch(LISTED, "m", namespace, [{"op": "remove", "path": label}], manager=ADMIN)

        note = await until_event(api, namespace, "DriftDetected")
        assert "metadata.labels.kubefoundry.ai/managed-by" in note
        put_back = await until(
            api,
            LISTED,
            "m",
            namespace,
            lambda obj: "kubefoundry.ai/managed-by" in (obj or {})["metadata"]["labels"],
        )
        assert put_back is not None
        assert phase(await api.get(MODEL_DEPLOYMENTS, "m", namespace)) == "Running"


async def test_change_after_a_moved_storage_version_is_written_in_it(
    suite: Suite, api: Client, namespace: str, stored_as_v1beta1: AuditLog
) -> None:
    suite.plane.kubectl("scale", "md/m", "-n", namespace, "--replicas=3")

    await until_deployment(
        api, "m", namespace, lambda obj: (obj["status"].get("replicas") or {}).get("ready") == 3
    )
    [line] = [line for line in writes(stored_as_v1beta1, namespace) if "/m?" in line]
    assert f"/apis/{LISTED.api_version}/" in line


@pytest.mark.parametrize("provider", UPSTREAM)
async def test_field_that_is_gone_stops_writing_and_nothing_else(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    kind = UPSTREAM[provider]
    await running(api, namespace, GPU, provider)
    before = await until(api, kind, "m", namespace, runs)
    requests = AuditLog(suite)
    await upgrade(api, bare(standin(provider).document))
    try:
        reported = await until_upstream(api, provider, "UnsupportedSchema")
        stopped = await until_deployment(
            api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "UnsupportedSchema"
        )

        assert reported["status"]["ready"] is False
        assert reported["status"]["upstreamCRDVersion"] == kind.api_version
        # users of a namespace cannot install anything
        assert message(stopped, "ResourceCreated") == message(reported, "UpstreamReady").replace(
            "; install", "; ask an administrator to install"
        )
        assert (phase(stopped), reason(stopped, "Ready")) == ("Running", "DeploymentReady")
        assert stopped["status"]["message"].endswith("; the model keeps serving")
        assert stopped["status"]["endpoint"]
        suite.plane.kubectl("scale", "md/m", "-n", namespace, "--replicas=0")
        await until_deployment(
            api,
            "m",
            namespace,
            lambda obj: any(
                (find(obj["status"]["conditions"], type_) or {}).get("observedGeneration")
                == obj["metadata"]["generation"]
                for type_ in ("ResourceCreated", "ProviderCompatible")
            ),
        )
        assert requests.writes(f"provider-{provider}", namespace, kind.plural) == []
        assert before is not None
        assert (await api.get(kind, "m", namespace))["metadata"]["uid"] == before["metadata"]["uid"]

        suite.plane.kubectl("delete", "md/m", "-n", namespace)

        assert requests.writes(f"provider-{provider}", namespace, kind.plural) != []
        assert (await api.list(kind, namespace))[0] == []
    finally:
        await upgrade(api, standin(provider).document)
    await until_upstream(api, provider, "SchemaSupported")


async def test_removed_field_is_refused_to_models_that_need_it(
    suite: Suite, api: Client, namespace: str
) -> None:
    narrow = copy.deepcopy(standin("dynamo").document)
    [version] = narrow["spec"]["versions"]
    service = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["services"]
    del service["additionalProperties"]["properties"]["extraPodSpec"]["properties"]["nodeSelector"]
    await upgrade(api, narrow)
    try:
        selecting = {"services": {"VllmWorker": {"extraPodSpec": {"nodeSelector": {"pool": "a"}}}}}
        await until_refused(api, namespace, selecting, "field not declared in schema")
        body = model_deployment("m", namespace, {**GPU, "nodeSelector": {"pool": "a"}}, provider="dynamo")
        await api.create(MODEL_DEPLOYMENTS, body, manager="test")

        refused = await until_deployment(
            api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ApplyRejected"
        )

        assert "extraPodSpec.nodeSelector: field not declared in schema" in message(
            refused, "ResourceCreated"
        )
    finally:
        await upgrade(api, standin("dynamo").document)
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")


async def test_violated_upstream_rule_is_reported_until_met(
    suite: Suite, api: Client, namespace: str
) -> None:
    await running(api, namespace, GPU, "dynamo")
    before = await api.get(GRAPHS, "m", namespace)
    strict = copy.deepcopy(standin("dynamo").document)
    [version] = strict["spec"]["versions"]
    rule = "self.services.VllmWorker.replicas < 5"
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] = [
        {"rule": f"!('VllmWorker' in self.services) || {rule}", "message": "five workers are too many"}
    ]
    await upgrade(api, strict)
    try:
        five = {"services": {"VllmWorker": {"replicas": 5}}}
        await until_refused(api, namespace, five, "five workers are too many")
        suite.plane.kubectl("scale", "md/m", "-n", namespace, "--replicas=5")

        refused = await until_deployment(
            api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ApplyRejected"
        )

        received = message(refused, "ResourceCreated")
        assert received.startswith("DynamoGraphDeployment 'm' was refused: ")
        assert "five workers are too many" in received
        assert received.endswith("; change the ModelDeployment accordingly")
        assert (phase(refused), refused["status"]["replicas"]["desired"]) == ("Running", 1)
        after = await api.get(GRAPHS, "m", namespace)
        assert after["metadata"]["generation"] == before["metadata"]["generation"]
        suite.plane.kubectl("scale", "md/m", "-n", namespace, "--replicas=4")
        await until_deployment(
            api,
            "m",
            namespace,
            lambda obj: (
                reason(obj, "ResourceCreated") == "ResourceCreated"
                and obj["status"]["replicas"]["ready"] == 4
            ),
        )
    finally:
        await upgrade(api, standin("dynamo").document)


async def until_refused(api: Client, namespace: str, spec: Object, words: str) -> None:
    """Applies that spec to a DynamoGraphDeployment `m`, and stores nothing, until the API server refuses it.

    It learns of a changed CRD a moment after that is stored.
    """
    body = {
        "apiVersion": GRAPHS.api_version,
        "kind": GRAPHS.kind,
        "metadata": {"name": "m", "namespace": namespace},
        "spec": spec,
    }
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                await api.apply(GRAPHS, body, manager="test", dry_run=True)
            except ApiError as error:
                assert words in error.message
                return
            await asyncio.sleep(PROBE)


def api_version(obj: Object) -> str | None:
    found: str | None = obj["status"].get("provider", {}).get("resourceAPIVersion")
    return found


def writes(requests: AuditLog, namespace: str) -> list[str]:
    return requests.writes("provider-dynamo", namespace, GRAPHS.plural)


async def components(api: Client, name: str, namespace: str) -> list[str]:
    return [part["name"] for part in (await api.get(LISTED, name, namespace))["spec"]["components"]]
