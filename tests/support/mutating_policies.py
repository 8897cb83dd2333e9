"""Policies of a platform that change objects while the API server admits them (MutatingAdmissionPolicy)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from kubefoundry_sdk.api.kinds import CONFIG_MAPS, Kind
from kubefoundry_sdk.cluster.client import Client
from support.waiting import SECONDS

GROUP: Final = "admissionregistration.k8s.io"
POLICIES: Final = Kind(GROUP, "v1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy", namespaced=False)
BINDINGS: Final = Kind(
    GROUP, "v1", "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", namespaced=False
)


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change of what is written.

    resource: plural, with the subresource (`modeldeployments/status`). group: its API group.
    patch: a CEL expression that returns a list of JSONPatch.
    name: of the objects to change, and the first part of it before a dash; empty for all.
    """

    group: str
    resource: str
    patch: str
    name: str = ""


def patch(op: str, path: str, value: str = "", *, when: str = "true") -> str:
    """The CEL expression of one operation. value: a CEL expression. when: a CEL condition."""
    stated = f", value: {value}" if value else ""
    return f'{when} ? [JSONPatch{{op: "{op}", path: "{path}"{stated}}}] : []'


PROBED: Final = Mutation("", "configmaps", patch("add", "/data", '{"mutated": "yes"}'), "probe")


@asynccontextmanager
async def mutating(api: Client, namespace: str, mutations: Sequence[Mutation]) -> AsyncIterator[None]:
    """The mutations are in force inside the block, for objects of the namespace."""
    async with AsyncExitStack() as stack:
        # The API server takes up policies together: once the last is in force, so are the others.
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
        yield


@asynccontextmanager
async def _policy(api: Client, namespace: str, name: str, mutation: Mutation) -> AsyncIterator[None]:
    condition = "true"
    if mutation.name:
        called = "object.metadata.name"
        condition = f"{called} == '{mutation.name}' || {called}.startsWith('{mutation.name}-')"
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
    made = await api.create(POLICIES, {**head, "kind": POLICIES.kind, "spec": spec}, manager="admin")
    bound = await api.create(
        BINDINGS, {**head, "kind": BINDINGS.kind, "spec": {"policyName": name}}, manager="admin"
    )
    try:
        yield
    finally:
        await api.delete(BINDINGS, name, None, uid=bound["metadata"]["uid"])
        await api.delete(POLICIES, name, None, uid=made["metadata"]["uid"])
