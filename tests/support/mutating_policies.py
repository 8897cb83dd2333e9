"""Policies of a platform that change objects at admission (MutatingAdmissionPolicy)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from kubefoundry_sdk._api.kinds import CONFIG_MAPS, MODEL_DEPLOYMENTS, Kind
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from support.kinds import UPSTREAM
from support.waiting import SECONDS

GROUP: Final = "admissionregistration.k8s.io"
POLICIES: Final = Kind(GROUP, "v1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy", namespaced=False)
BINDINGS: Final = Kind(
    GROUP, "v1", "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", namespaced=False
)


@dataclass(frozen=True, slots=True)
class Mutation:
    """A change of written objects.

    Attributes:
        group: API group of the resource.
        resource: Plural of the resource, with the subresource (`modeldeployments/status`).
        patch: A CEL expression that returns a list of JSONPatch.
        name: Name of the objects, or the part of their names before a dash. Empty for all objects.
    """

    group: str
    resource: str
    patch: str
    name: str = ""


def patch(op: str, path: str, value: str = "", *, when: str = "true") -> str:
    """Return the CEL expression of one operation. `value` and `when` (a condition) are CEL expressions."""
    argument = f", value: {value}" if value else ""
    return f'{when} ? [JSONPatch{{op: "{op}", path: "{path}"{argument}}}] : []'


PROBED: Final = Mutation("", "configmaps", patch("add", "/data", '{"mutated": "yes"}'), "probe")


@asynccontextmanager
async def mutating(api: Client, namespace: str, mutations: Sequence[Mutation]) -> AsyncIterator[None]:
    """Put the mutations in force during the block, for objects of the namespace."""
    async with AsyncExitStack() as stack:
        # The API server loads all policies together: once the last is in force, the others are as well.
        for number, mutation in enumerate((*mutations, PROBED)):
            await stack.enter_async_context(_policy(api, namespace, f"{namespace}-{number}", mutation))
        example = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": PROBED.name, "namespace": namespace},
        }
        async with asyncio.timeout(SECONDS):
            while not (await api.create(CONFIG_MAPS, example, manager="test", dry_run=True)).get("data"):
                pass
            for mutation in mutations:
                await _until_typed(api, namespace, mutation)
        yield


async def _until_typed(api: Client, namespace: str, mutation: Mutation) -> None:
    """Wait until the API server knows the schema of the kind. Shortly after a CRD is created, it answers 503."""
    kinds = (MODEL_DEPLOYMENTS, *UPSTREAM.values())
    plural = mutation.resource.partition("/")[0]
    for kind in [kind for kind in kinds if (kind.group, kind.plural) == (mutation.group, plural)]:
        # Policies run before the schema is validated, so the object need not be valid.
        body = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": "typed", "namespace": namespace},
        }
        code = 503
        while code == 503:
            try:
                await api.create(kind, body, manager="test", dry_run=True)
                code = 201
            except ApiError as error:
                code = error.code


@asynccontextmanager
async def _policy(api: Client, namespace: str, name: str, mutation: Mutation) -> AsyncIterator[None]:
    condition = "true"
    if mutation.name:
        object_name = "object.metadata.name"
        condition = f"{object_name} == '{mutation.name}' || {object_name}.startsWith('{mutation.name}-')"
    spec = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "resourceRules": [
                {
                    "apiGroups": [mutation.group],
                    "apiVersions": ["*"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": [mutation.resource],
                }
            ],
        },
        "matchConditions": [{"name": "named", "expression": condition}],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": mutation.patch}}],
    }
    head = {"apiVersion": POLICIES.api_version, "metadata": {"name": name}}
    policy = await api.create(POLICIES, {**head, "kind": POLICIES.kind, "spec": spec}, manager="admin")
    binding = await api.create(
        BINDINGS, {**head, "kind": BINDINGS.kind, "spec": {"policyName": name}}, manager="admin"
    )
    try:
        yield
    finally:
        await api.delete(BINDINGS, name, None, uid=binding["metadata"]["uid"])
        await api.delete(POLICIES, name, None, uid=policy["metadata"]["uid"])
