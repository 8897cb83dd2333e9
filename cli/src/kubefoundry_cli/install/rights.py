"""Describe the rights that a manifest requests, so that an administrator can judge them before the apply."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kubefoundry_sdk._api.kinds import Object


@dataclass(frozen=True, slots=True)
class Right:
    """One rule of a role.

    Attributes:
        role: Kind and name of the role.
        text: The rule in words.
        risky: Whether the rule grants access to Secrets, has a wildcard, or lets its subject gain rights.
    """

    role: str
    text: str
    risky: bool


def rights(objects: Sequence[Object]) -> Iterator[Right]:
    """Yield the rules of all roles of the manifest, and the roles outside the manifest that it binds."""
    for obj in objects:
        meta, kind = obj["metadata"], obj["kind"]
        where = (
            f"in namespace {meta['namespace']}"
            if kind in ("Role", "RoleBinding") and "namespace" in meta
            else "in all namespaces"
        )
        if kind in ("Role", "ClusterRole"):
            for rule in obj.get("rules") or ():
                yield Right(
                    f"{kind} {meta['name']}",
                    f"{_words(rule)} {where}",
                    _risky(rule, cluster=kind == "ClusterRole"),
                )
        elif kind in ("RoleBinding", "ClusterRoleBinding"):
            role = obj["roleRef"]["name"]
            if not any(_named(other, obj["roleRef"]) for other in objects):
                yield Right(f"{kind} {meta['name']}", f"the rights of {role} {where}", risky=True)


def _named(obj: Object, ref: dict[str, Any]) -> bool:
    return (obj["kind"], obj["metadata"]["name"]) == (ref.get("kind"), ref.get("name"))


def _words(rule: dict[str, Any]) -> str:
    verbs = ", ".join(rule.get("verbs") or ())
    if "nonResourceURLs" in rule:
        return f"{verbs}: {', '.join(rule['nonResourceURLs'])}"
    groups = [group or "core" for group in rule.get("apiGroups") or ()]
    only = f" named {', '.join(rule['resourceNames'])}" if rule.get("resourceNames") else ""
    return f"{verbs}: {', '.join(rule.get('resources') or ())} ({', '.join(groups)}){only}"


def _risky(rule: dict[str, Any], *, cluster: bool) -> bool:
    resources, verbs = set(rule.get("resources") or ()), set(rule.get("verbs") or ())
    everything = "*" in resources | verbs | set(rule.get("apiGroups") or ())
    secrets = "secrets" in resources and (cluster or not rule.get("resourceNames"))
    hands_on = bool(verbs & {"escalate", "bind", "impersonate"})
    return everything or secrets or hands_on
