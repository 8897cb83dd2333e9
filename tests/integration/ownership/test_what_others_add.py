"""Labels, annotations, finalizers and fields of upstream objects: ours follow the model, those of others stay."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU
from support.edits import ADMIN, Edit, nothing_more_is_done, running, until_upstream
from support.events import notes
from support.kinds import UPSTREAM

pytestmark = pytest.mark.integration


GROUP: dict[str, Any] = {
    "groupName": "worker",
    "replicas": 1,
    "minReplicas": 1,
    "maxReplicas": 1,
    "numOfHosts": 1,
    "rayStartParams": {},
    "template": {"spec": {"containers": [{"name": "ray-worker", "image": "example.com/other:1"}]}},
}
"""A group of workers as others may append it to ours, whose list KubeRay's CRD takes as one value."""


@pytest.mark.parametrize("provider", UPSTREAM)
async def test_additions_of_others_stay(suite: Suite, api: Client, namespace: str, provider: str) -> None:
    kind = UPSTREAM[provider]
    await running(api, namespace, GPU, provider)
    additions = [
        {"op": "add", "path": "/metadata/labels/team", "value": "search"},
        {"op": "add", "path": "/metadata/annotations/example.com~1note", "value": "mine"},
        {"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/hold"},
    ]

    await api.json_patch(kind, "m", namespace, additions, manager=ADMIN)

    await nothing_more_is_done(suite, api, namespace, provider)
    # Even a write of ours leaves them.
    await relabel(api, namespace, {"kubefoundry.ai/tier": "gold"})
    seen = await until_upstream(
        api, kind, namespace, lambda obj: obj["metadata"]["labels"].get("kubefoundry.ai/tier") == "gold"
    )
    assert seen["metadata"]["labels"]["team"] == "search"
    assert seen["metadata"]["annotations"]["example.com/note"] == "mine"
    assert "example.com/hold" in seen["metadata"]["finalizers"]
    assert await notes(api, namespace, "DriftDetected") == []
    index = seen["metadata"]["finalizers"].index("example.com/hold")
    await api.json_patch(
        kind, "m", namespace, [{"op": "remove", "path": f"/metadata/finalizers/{index}"}], manager=ADMIN
    )


@pytest.mark.parametrize(
    ("provider", "path", "value", "named"),
    [
        pytest.param("kaito", ("resource", "instanceType"), "big", "resource.instanceType", id="kaito"),
        pytest.param(
            "dynamo",
            ("spec", "services", "Frontend", "extraPodMetadata", "annotations"),
            {"team": "search"},
            "spec.services.Frontend.extraPodMetadata.annotations",
            id="dynamo",
        ),
        pytest.param(
            "kuberay",
            ("spec", "rayClusterConfig", "workerGroupSpecs", 1),
            GROUP,
            "spec.rayClusterConfig.workerGroupSpecs[1]",
            id="kuberay's second group of the same name",
        ),
        # A client in Go writes the zero values of its types.
        pytest.param("kuberay", ("spec", "suspend"), False, None, id="kuberay"),
    ],
)
async def test_field_of_others_in_the_spec_stays(
    suite: Suite,
    api: Client,
    namespace: str,
    provider: str,
    path: tuple[str | int, ...],
    value: Any,
    named: str | None,
) -> None:
    kind, theirs = UPSTREAM[provider], Edit(provider, GPU, path, value, "")
    await running(api, namespace, GPU, provider)

    await api.json_patch(
        kind, "m", namespace, [{"op": "add", "path": theirs.pointer, "value": value}], manager=ADMIN
    )

    await nothing_more_is_done(suite, api, namespace, provider)
    assert theirs.read(await api.get(kind, "m", namespace)) == value
    model = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
    if named is None:
        assert await notes(api, namespace, "DriftDetected") == []
        return
    words = f"{kind.kind} 'm' has fields that others added: {named} ({ADMIN}); they are left as they are"
    assert model["status"]["message"].endswith(words)
    assert await notes(api, namespace, "DriftDetected") == [words]


@pytest.mark.parametrize("provider", UPSTREAM)
async def test_labels_of_our_prefix_follow_the_deployments(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    kind = UPSTREAM[provider]
    await running(api, namespace, GPU, provider)

    await relabel(api, namespace, {"kubefoundry.ai/tier": "gold", "team": "search"})
    labelled = await until_upstream(
        api, kind, namespace, lambda obj: obj["metadata"]["labels"].get("kubefoundry.ai/tier") == "gold"
    )
    await relabel(api, namespace, {"team": "search"})
    bare = await until_upstream(
        api, kind, namespace, lambda obj: "kubefoundry.ai/tier" not in obj["metadata"]["labels"]
    )

    assert "team" not in labelled["metadata"]["labels"]
    assert bare["metadata"]["labels"] == {
        names.MANAGED_BY_LABEL: names.MANAGED_BY,
        f"{names.PREFIX}provider": provider,
        **({names.MODEL_SOURCE_LABEL: "huggingface"} if provider == "kaito" else {}),
    }
    assert await notes(api, namespace, "DriftDetected") == []


async def relabel(api: Client, namespace: str, labels: dict[str, str]) -> None:
    """Makes these all labels of the ModelDeployment."""
    await api.json_patch(
        MODEL_DEPLOYMENTS,
        "m",
        namespace,
        [{"op": "add", "path": "/metadata/labels", "value": labels}],
        manager="test",
    )
