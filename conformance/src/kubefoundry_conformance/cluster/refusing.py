"""WRI-4, WRI-5: the API server refuses writes of the subject."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from kubefoundry_conformance.check import Finding, Skipped
from kubefoundry_conformance.cluster.deployments import Place
from kubefoundry_conformance.cluster.rig import Rig, of_rig
from kubefoundry_conformance.cluster.settings import MANAGER
from kubefoundry_conformance.cluster.waiting import SECONDS, NotSeen, condition, longest, phase
from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._api.reasons import PROVIDER_COMPATIBLE, RESOURCE_CREATED
from kubefoundry_sdk._cluster.errors import ApiError

ADMISSION: Final = "admissionregistration.k8s.io"
POLICIES: Final = Kind(
    ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False
)
BINDINGS: Final = Kind(
    ADMISSION, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", namespaced=False
)
WORDS: Final = "the conformance kit refuses this"
AGAIN: Final = 0.1
"""Seconds between dry runs until the policy is effective; the API server does not report that."""

CHANGES: Final[tuple[dict[str, Any], ...]] = (
    {"scaling": {"replicas": 2}},
    {"engine": {"args": {"seed": "7"}}},
    {"env": [{"name": "CONFORMANCE", "value": "1"}]},
)
"""Edits that change an upstream object in place; a provider may refuse some."""

IDENTITY: Final[dict[str, Any]] = {"model": {"id": "org/another-model"}}


@asynccontextmanager
async def refuse_writes(rig: Rig, place: Place, upstream: Object) -> AsyncIterator[None]:
    """Refuse writes of the upstream object, and of any other object for the same ModelDeployment, in this context.

    Raises:
        Skipped: The API server is older than ValidatingAdmissionPolicies.
    """
    name = f"{MANAGER}-{place.name}"
    has_name = f"has(object.metadata.name) && object.metadata.name == '{place.name}'"
    owners = "has(object.metadata.ownerReferences) && object.metadata.ownerReferences"
    expression = f"!(({has_name}) || ({owners}.exists(owner, owner.name == '{place.name}')))"
    rule = {"apiGroups": [rig.kind.group], "apiVersions": ["*"], "resources": [rig.kind.plural]}
    policy = {
        "matchConstraints": {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": place.namespace}},
            "resourceRules": [{**rule, "operations": ["CREATE", "UPDATE"]}],
        },
        "validations": [{"expression": expression, "message": WORDS}],
    }
    try:
        objects = [(POLICIES, await rig.add(POLICIES, {"metadata": {"name": name}, "spec": policy}))]
    except ApiError as error:
        if error.not_found:
            raise Skipped("not run, because ValidatingAdmissionPolicy needs Kubernetes 1.30") from error
        raise
    try:
        binding = {"policyName": name, "validationActions": ["Deny"]}
        objects.append((BINDINGS, await rig.add(BINDINGS, {"metadata": {"name": name}, "spec": binding})))
        await _wait_until_effective(rig, upstream)
        yield
    finally:
        for kind, obj in reversed(objects):
            await rig.api.delete(kind, name, None, uid=obj["metadata"]["uid"])


async def _wait_until_effective(rig: Rig, upstream: Object) -> None:
    """Wait until the API server refuses a dry run.

    Raises:
        NotSeen: The API server still accepts the dry run.
    """
    meta = upstream["metadata"]
    other = copy.deepcopy(upstream)
    other.pop("status", None)
    owner = {"ownerReferences": meta["ownerReferences"]} if meta.get("ownerReferences") else {}
    other["metadata"] = {"generateName": meta["name"], "namespace": meta["namespace"], **owner}
    try:
        async with asyncio.timeout(longest(SECONDS)):
            while True:
                try:
                    await rig.api.create(rig.kind, other, manager=MANAGER, dry_run=True)
                except ApiError as error:
                    if WORDS in str(error):
                        return
                    raise
                await asyncio.sleep(AGAIN)
    except TimeoutError:
        raise NotSeen("the API server knows nothing of the policy that refuses writes") from None


async def _edit(rig: Rig, place: Place, change: dict[str, Any]) -> Object:
    """Change the spec, and return the ModelDeployment once the subject has reported on the change."""
    generation = (await rig.respec(place, change))["metadata"]["generation"]

    def is_reported(obj: Object) -> bool:
        created, compatible = condition(obj, RESOURCE_CREATED), condition(obj, PROVIDER_COMPATIBLE)
        current = compatible.get("observedGeneration") == generation
        return created.get("reason") == "ApplyRejected" or (current and compatible.get("status") == "False")

    return await rig.deployment(place, is_reported)


async def check_model_keeps_running(rig: Rig) -> Finding | None:
    """Check that a model stays Running after the API server has refused the write of an edit.

    Raises:
        Skipped: The subject refuses each edit itself.
    """
    place = rig.place()
    await rig.running(place)
    upstream = await rig.upstream(place)
    async with refuse_writes(rig, place, upstream):
        for change in CHANGES:
            live = await _edit(rig, place, change)
            if condition(live, RESOURCE_CREATED).get("reason") != "ApplyRejected":
                await rig.replace(place, rig.spec)
                continue
            if phase(live) != "Running":
                return Finding(f"phase {phase(live)} after a refused apply", "Running: what serves goes on")
            return None
    fields = ", ".join(next(iter(change)) for change in CHANGES)
    raise Skipped(f"the subject refuses every change of {fields}")


async def check_dry_run_of_replacement(rig: Rig) -> Finding | None:
    """Check that the upstream object stays if the API server refuses its replacement.

    Raises:
        Skipped: The subject refuses another `model.id` itself.
    """
    place = rig.place()
    await rig.running(place)
    upstream = await rig.upstream(place)
    async with refuse_writes(rig, place, upstream):
        live = await _edit(rig, place, IDENTITY)
        if condition(live, RESOURCE_CREATED).get("reason") != "ApplyRejected":
            raise Skipped("the subject refuses every other model.id")
        stored = [obj["metadata"] for obj in await rig.stored(place)]
        remaining = [meta["uid"] for meta in stored if "deletionTimestamp" not in meta]
        if remaining != [upstream["metadata"]["uid"]]:
            return Finding(
                f"{rig.kind.kind} {place.name} was deleted, and the new one is refused",
                "a dry run of the new one before anything is deleted",
            )
    return None


CHECKS: Final = (
    of_rig(
        "WRI-5",
        "an edit that the API server refuses",
        check_model_keeps_running,
        "ResourceCreated=ApplyRejected",
    ),
    of_rig(
        "WRI-4",
        "another model that the API server refuses",
        check_dry_run_of_replacement,
        "ResourceCreated=ApplyRejected",
    ),
)
