"""PRO-3, PRO-4: what the subject asked for in all checks, against what its manifest permits."""

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
    "get secrets": "for a Hugging Face Secret that is missing",
}
"""Rights that no check of the kit can see in use, and what they are for."""

OPERATORS: Final = ("deployments.apps", "leases.coordination.k8s.io")
"""What shows whether the upstream operator is up."""


def right(verb: str, group: str, resource: str) -> str:
    """As `kubectl auth can-i` takes it: `patch modeldeployments.kubefoundry.ai/status`."""
    name, slash, part = resource.partition("/")
    return f"{verb} {name}{'.' if group else ''}{group}{slash}{part}"


def used(requests: Iterable[Entry]) -> Iterator[tuple[str, str]]:
    """Right and object name of each request; the name is empty where it is about no single object."""
    for entry in requests:
        about = entry.get("objectRef")
        if not about or entry["responseStatus"]["code"] == 403:
            continue
        part = f"/{about['subresource']}" if about.get("subresource") else ""
        where = (about.get("apiGroup", ""), f"{about['resource']}{part}")
        yield right(entry["verb"], *where), str(about.get("name", ""))
        if entry["verb"] == "patch" and entry["responseStatus"]["code"] == 201:
            # An apply that makes an object needs both.
            yield right("create", *where), ""


def unused(rules: Sequence[Rule], requests: Iterable[Entry], excused: Mapping[str, str]) -> list[str]:
    """Rights that no request needed, without those that the excuses name.

    A `get` shows nothing more where a list, watch or patch of the same is permitted: it is not counted there.
    """
    seen = set(used(requests))
    rights = {one for one, _ in seen}
    found = set()
    for rule in rules:
        verbs = set(rule["verbs"]) - ({"get"} if {"list", "watch", "patch"} & set(rule["verbs"]) else set())
        for group, resource, verb in product(
            rule.get("apiGroups") or (), rule.get("resources") or (), sorted(verbs)
        ):
            one = right(verb, group, resource)
            if one in excused:
                continue
            names = rule.get("resourceNames")
            if names is None and one not in rights:
                found.add(one)
            found.update(f"{one} {name}" for name in names or () if (one, name) not in seen)
    return sorted(found)


def refused(requests: Iterable[Entry]) -> set[tuple[str, str]]:
    """Right and path of what was refused for lack of permission."""
    found = set()
    for entry in requests:
        decision = entry.get("annotations", {}).get("authorization.k8s.io/decision")
        if entry["responseStatus"]["code"] == 403 and decision == "forbid":
            about = entry.get("objectRef") or {}
            asked = right(entry["verb"], about.get("apiGroup", ""), about.get("resource", ""))
            found.add((asked, entry["requestURI"].partition("?")[0]))
    return found


def _of_operators(rig: Rig, asked: str) -> bool:
    verb, resource, *_ = asked.split(" ")
    upstream = right("", rig.kind.group, rig.kind.plural).strip()
    return verb in ("list", "watch") and resource in OPERATORS and resource != upstream


async def nothing_refused(rig: Rig) -> Finding | None:
    seen = sorted(
        f"{asked} ({path})" for asked, path in refused(rig.requests()) if not _of_operators(rig, asked)
    )
    if seen:
        return Finding(f"403 for {', '.join(seen)}", "the manifest permits what the subject asks for")
    return None


async def nothing_unused(rig: Rig) -> Finding | None:
    excused = {**UNSEEN, **rig.cases.unexercised}
    left = [one for one in unused(rig.rules, rig.requests(), excused) if not _of_operators(rig, one)]
    if left:
        return Finding(
            f"never used: {', '.join(left)}",
            "only rights that are used; those that the cases cannot exercise under `unexercised`, with a reason",
        )
    return None


async def operators_permitted(rig: Rig) -> Finding | None:
    asked = {one for one, _ in used(rig.requests()) if _of_operators(rig, one)}
    denied = sorted(path for one, path in refused(rig.requests()) if _of_operators(rig, one))
    if denied:
        return Finding(
            f"403 for {', '.join(denied)}", "a rule with the names of the upstream operator that it watches"
        )
    left = [one for one in unused(rig.rules, rig.requests(), {}) if _of_operators(rig, one)]
    if left:
        return Finding(
            f"never used: {', '.join(left)}: the subject watches an operator of another name, or none",
            "the names of the upstream operator that it watches",
        )
    if not asked:
        raise Skipped("the subject watches no upstream operator")
    return None


CHECKS: Final = (
    of_rig("PRO-4", "the upstream operator's Deployment and Lease", operators_permitted, "no 403"),
    of_rig("PRO-3", "what was refused in all checks", nothing_refused, "no 403"),
    of_rig("PRO-3", "what was permitted and never used in all checks", nothing_unused, "every right is used"),
)
"""Of all that the subject has asked for since it started: the last checks."""
