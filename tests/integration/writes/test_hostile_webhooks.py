"""Webhooks that change our writes cost a few writes, never a stream of them."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from support.audit import WRITES, AuditLog
from support.deployments import CPU, GPU, model_deployment
from support.mutating_policies import Mutation, mutating, patch

pytestmark = pytest.mark.integration

MINUTE: Final = 60.0
"""Seconds in which writes are counted."""

TOUCHES: Final = 1.0
"""Seconds between two edits by somebody else, each of which makes our processes look at the object again."""

MOST: Final = 40
"""Writes of all our processes for one model in its first minute, dry runs included. About six create it, and each of
two processes may send ten equal ones and then one every 20 s."""

MODELS: Final = ("kubefoundry.ai", "modeldeployments")
OBJECTS: Final = ("apps", "deployments")
OURS: Final = f'object.metadata.?finalizers.orValue([]).exists(f, f.startsWith("{names.PREFIX}"))'
VERSION: Final = "string(object.metadata.?resourceVersion.orValue('none'))"
"""Differs at each write."""


def annotation(name: str) -> str:
    return f"/metadata/annotations/{name.replace('/', '~1')}"


def label(name: str) -> str:
    return f"/metadata/labels/{name.replace('/', '~1')}"


def annotated(name: str) -> str:
    return f'"{name}" in object.metadata.?annotations.orValue({{}})'


PROVIDER_LABEL: Final = f"{names.PREFIX}provider"
LABELLED: Final = f'"{PROVIDER_LABEL}" in object.metadata.?labels.orValue({{}})'
IMAGE: Final = "object.spec.template.spec.containers[0].image"

HOSTILE: Final[Mapping[str, tuple[str, Mutation]]] = {
    "nothing": ("dynamo", Mutation(*MODELS, patch("test", "/kind", '"x"', when="false"))),
    "finalizers": ("dynamo", Mutation(*MODELS, patch("remove", "/metadata/finalizers", when=OURS))),
    "handover": ("dynamo", Mutation(*MODELS, patch("remove", "/metadata/finalizers", when=OURS))),
    "stamp": ("dynamo", Mutation(*MODELS, patch("add", "/metadata/annotations/stamp", VERSION))),
    "result": (
        "dynamo",
        Mutation(
            *MODELS,
            patch(
                "remove",
                annotation(names.DRY_RUN_RESULT_ANNOTATION),
                when=annotated(names.DRY_RUN_RESULT_ANNOTATION),
            ),
        ),
    ),
    "message": ("dynamo", Mutation(MODELS[0], f"{MODELS[1]}/status", patch("add", "/status/message", '"x"'))),
    "counter": (
        "dynamo",
        Mutation(MODELS[0], f"{MODELS[1]}/status", patch("add", "/status/message", VERSION)),
    ),
    "labels": ("direct", Mutation(*OBJECTS, patch("replace", label(PROVIDER_LABEL), '"a"', when=LABELLED))),
    "helpers": (
        "direct",
        Mutation("", "services", patch("replace", label(PROVIDER_LABEL), '"a"', when=LABELLED)),
    ),
    "record": (
        "direct",
        Mutation(
            *OBJECTS,
            patch(
                "replace",
                annotation(names.APPLIED_ANNOTATION),
                '"x"',
                when=annotated(names.APPLIED_ANNOTATION),
            ),
        ),
    ),
    "unrecorded": (
        "direct",
        Mutation(
            *OBJECTS,
            patch("remove", annotation(names.APPLIED_ANNOTATION), when=annotated(names.APPLIED_ANNOTATION)),
        ),
    ),
    "image": (
        "direct",
        Mutation(
            *OBJECTS,
            patch(
                "replace",
                "/spec/template/spec/containers/0/image",
                f'"mirror.internal/" + {IMAGE}',
                when=f'!{IMAGE}.startsWith("mirror.internal/")',
            ),
        ),
    ),
    "random": (
        "direct",
        Mutation(
            *OBJECTS, patch("replace", "/spec/template/spec/containers/0/image", f'"mirror/x:" + {VERSION}')
        ),
    ),
    "defaults": (
        "direct",
        Mutation(*OBJECTS, patch("add", "/spec/template/spec/terminationGracePeriodSeconds", "7")),
    ),
}
"""Provider and mutation by the name of the model. A policy changes only objects of its model."""


@pytest.mark.needs_kubernetes("1.36", "MutatingAdmissionPolicy")
async def test_hostile_admission_causes_few_writes(suite: Suite, api: Client, namespace: str) -> None:
    log = AuditLog(suite)
    mutations = [
        Mutation(mutation.group, mutation.resource, mutation.patch, name)
        for name, (_, mutation) in HOSTILE.items()
    ]
    async with mutating(api, namespace, mutations):
        for name, (provider, _) in HOSTILE.items():
            dry = {names.DRY_RUN_ANNOTATION: "true"} if name == "result" else {}
            spec = CPU if provider == "direct" else GPU
            body = model_deployment(name, namespace, spec, provider=provider, annotations={"a": "b", **dry})
            await api.create(MODEL_DEPLOYMENTS, body, manager="test")
        await touched_for(api, namespace, MINUTE / 4)
        await change(api, namespace, "handover", "/spec/provider/name", "kuberay")
        await touched_for(api, namespace, MINUTE * 3 / 4)
    found = writes(log, namespace)
    print("\nwrites in the first minute, by model and resource:")
    for name in HOSTILE:
        print(f"  {name:12}{found[name].total():5}  {dict(found[name])}")
    assert {name: found[name].total() for name in HOSTILE if found[name].total() > MOST} == {}


async def touched_for(api: Client, namespace: str, seconds: float) -> None:
    """Edits each model again and again, as any controller does that keeps something on it."""
    start = time.monotonic()
    number = 0
    while time.monotonic() - start < seconds:
        number += 1
        for name in HOSTILE:
            await change(api, namespace, name, "/metadata/annotations/touched", f"{start}-{number}")
        await asyncio.sleep(TOUCHES)


async def change(api: Client, namespace: str, name: str, path: str, value: Any) -> None:
    operations = [{"op": "add", "path": path, "value": value}]
    await api.json_patch(MODEL_DEPLOYMENTS, name, namespace, operations, manager="somebody")


def writes(log: AuditLog, namespace: str) -> dict[str, Counter[str]]:
    """By model and resource: every request of ours that asked for a change, Events apart."""
    found: dict[str, Counter[str]] = {name: Counter() for name in HOSTILE}
    for component, entry in log.all(namespace):
        target = entry["objectRef"]
        if entry["verb"] not in WRITES or target["resource"] == "events":
            continue
        model = target.get("name", "").split("-")[0]
        if model in found:
            found[model][f"{component} {target['resource']}"] += 1
    return found
