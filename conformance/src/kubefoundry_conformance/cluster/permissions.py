"""PRO-3, PRO-4: the subject's requests in all checks, compared with the permissions of its manifest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final

from kubefoundry_conformance.check import Finding, Skipped
from kubefoundry_conformance.cluster.manifest import Rule
from kubefoundry_conformance.cluster.rig import Rig, of_rig

Entry = Mapping[str, Any]

UNSEEN: Final[Mapping[str, str]] = {
    "update modeldeployments.kubefoundry.ai/finalizers": "admission of owner references asks for it, no request",
    "get services": "for endpoints that are verified (`--verify-endpoint`)",
    "get services/proxy": "for endpoints that are verified from outside the cluster",
    "create services/proxy": "for endpoints that are verified by a request of one token",
    "create leases.coordination.k8s.io": "for replicas that elect a leader: here one runs",
    "get leases.coordination.k8s.io": "for replicas that elect a leader",
    "update leases.coordination.k8s.io": "for replicas that elect a leader",
    "list workloads.kueue.x-k8s.io": "for models that wait in a queue of Kueue, which the kit does not install",
    "watch workloads.kueue.x-k8s.io": "for models that wait in a queue of Kueue, which the kit does not install",
    "get secrets": "for a Hugging Face Secret that is missing",
}
"""Permissions that no check of the kit exercises, and their purpose."""

OPERATORS: Final = ("deployments.apps", "leases.coordination.k8s.io")
"""Resources by which a subject watches its upstream operator."""


def right(verb: str, group: str, resource: str) -> str:
    """Return a permission as `kubectl auth can-i` takes it: `patch modeldeployments.kubefoundry.ai/status`."""
    name, slash, part = resource.partition("/")
    return f"{verb} {name}{'.' if group else ''}{group}{slash}{part}"


def used(requests: Iterable[Entry]) -> Iterator[tuple[str, str]]:
    """Yield permission and object name of each permitted request. The name is empty for a request of many objects."""
    for entry in requests:
        about = entry.get("objectRef")
        if not about or entry["responseStatus"]["code"] == 403:
            continue
        part = f"/{about['subresource']}" if about.get("subresource") else ""
        where = (about.get("apiGroup", ""), f"{about['resource']}{part}")
        yield right(entry["verb"], *where), str(about.get("name", ""))
        if entry["verb"] == "patch" and entry["responseStatus"]["code"] == 201:
            # An apply that creates an object needs both permissions.
            yield right("create", *where), ""


def unused(rules: Sequence[Rule], requests: Iterable[Entry], excused: Mapping[str, str]) -> list[str]:
    """Return the permissions that no request needed and that are not excused.

    A `get` next to a permitted list, watch or patch of the same resource is not counted: it reveals nothing more.
    """
    seen = set(used(requests))
    rights = {permission for permission, _ in seen}
    unused_rights = set()
    for rule in rules:
        names = rule.get("resourceNames")
        for permission in _permissions(rule) - excused.keys():
            if names is None and permission not in rights:
                unused_rights.add(permission)
            unused_rights.update(
                f"{permission} {name}" for name in names or () if (permission, name) not in seen
            )
    return sorted(unused_rights)


def _permissions(rule: Rule) -> set[str]:
    """Return the permissions of a rule, without a `get` that reveals nothing more than its other verbs."""
    verbs = set(rule["verbs"])
    if {"list", "watch", "patch"} & verbs:
        verbs.discard("get")
    combinations = product(verbs, rule.get("apiGroups") or (), rule.get("resources") or ())
    return {right(verb, group, resource) for verb, group, resource in combinations}


def refused(requests: Iterable[Entry]) -> set[tuple[str, str]]:
    """Return permission and path of each request that was refused for lack of permission."""
    denied = set()
    for entry in requests:
        decision = entry.get("annotations", {}).get("authorization.k8s.io/decision")
        if entry["responseStatus"]["code"] == 403 and decision == "forbid":
            about = entry.get("objectRef") or {}
            permission = right(entry["verb"], about.get("apiGroup", ""), about.get("resource", ""))
            denied.add((permission, entry["requestURI"].partition("?")[0]))
    return denied


def _is_for_operator(rig: Rig, permission: str) -> bool:
    verb, resource, *_ = permission.split(" ")
    upstream = right("", rig.kind.group, rig.kind.plural).strip()
    return verb in ("list", "watch") and resource in OPERATORS and resource != upstream


async def check_nothing_is_refused(rig: Rig) -> Finding | None:
    """Check that no request of the subject was refused for lack of permission.

    Requests about the upstream operator belong to `check_operator_access`.
    """
    seen = sorted(
        f"{permission} ({path})"
        for permission, path in refused(rig.requests())
        if not _is_for_operator(rig, permission)
    )
    if seen:
        return Finding(f"403 for {', '.join(seen)}", "the manifest permits what the subject asks for")
    return None


async def check_nothing_is_unused(rig: Rig) -> Finding | None:
    """Check that the subject used every permission of its manifest.

    Permissions in UNSEEN and under `unexercised` of the cases are excused.
    """
    excused = {**UNSEEN, **rig.cases.unexercised}
    left = [
        permission
        for permission in unused(rig.rules, rig.requests(), excused)
        if not _is_for_operator(rig, permission)
    ]
    if left:
        return Finding(
            f"never used: {', '.join(left)}",
            "only rights that are used; those that the cases cannot exercise under `unexercised`, with a reason",
        )
    return None


async def check_operator_access(rig: Rig) -> Finding | None:
    """Check that the subject may watch its upstream operator, and uses these permissions.

    Raises:
        Skipped: The subject watches no upstream operator.
    """
    denied = sorted(path for permission, path in refused(rig.requests()) if _is_for_operator(rig, permission))
    if denied:
        return Finding(
            f"403 for {', '.join(denied)}", "a rule with the names of the upstream operator that it watches"
        )
    left = [
        permission
        for permission in unused(rig.rules, rig.requests(), {})
        if _is_for_operator(rig, permission)
    ]
    if left:
        return Finding(
            f"never used: {', '.join(left)}: the subject watches an operator of another name, or none",
            "the names of the upstream operator that it watches",
        )
    if not any(_is_for_operator(rig, permission) for permission, _ in used(rig.requests())):
        raise Skipped("the subject watches no upstream operator")
    return None


CHECKS: Final = (
    of_rig("PRO-4", "the upstream operator's Deployment and Lease", check_operator_access, "no 403"),
    of_rig("PRO-3", "what was refused in all checks", check_nothing_is_refused, "no 403"),
    of_rig(
        "PRO-3",
        "what was permitted and never used in all checks",
        check_nothing_is_unused,
        "every right is used",
    ),
)
"""They read all requests since the start of the subject, so they run last."""
