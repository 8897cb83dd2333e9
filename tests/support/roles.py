"""Change the permissions of our components for a while, and wait until the change is in force."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from kubefoundry_local.control_plane import ROOT, ControlPlane
from kubefoundry_local.suite import NAMESPACE, PROBE
from support.waiting import SECONDS


def until_allowed(
    plane: ControlPlane, component: str, verb: str, resource: str, *, allowed: bool, namespace: str = ""
) -> None:
    """Wait until the API server, which learns of roles by a watch, allows or denies a request.

    Args:
        plane: The control plane.
        component: The component, as in the name of its ServiceAccount: `provider-kaito`.
        verb: An RBAC verb.
        resource: `workspaces.kaito.sh`, or `deployments.apps/kaito-workspace` for a single object.
        allowed: The expected answer.
        namespace: The namespace of the objects, empty for all namespaces.
    """
    account = f"system:serviceaccount:{NAMESPACE}:kubefoundry-{component}"
    where = f"--namespace={namespace}" if namespace else "--all-namespaces"
    until = time.monotonic() + SECONDS
    while True:
        question = ("auth", "can-i", verb, resource, f"--as={account}", where)
        if (plane.kubectl(*question, check=False).returncode == 0) == allowed:
            return
        assert time.monotonic() < until, f"{component} may {'not ' if allowed else ''}{verb} {resource}"
        time.sleep(PROBE)


@contextmanager
def without(plane: ControlPlane, component: str, resource: str, *verbs: str) -> Iterator[None]:
    """Remove these verbs on a resource from the component's ClusterRole during the block."""
    name = f"kubefoundry-{component}"
    role = json.loads(plane.kubectl("get", "clusterrole", name, "-o", "json").stdout)
    del role["metadata"]["resourceVersion"]
    plane.kubectl("replace", "-f", "-", input=json.dumps(cut(role, resource, verbs)))
    try:
        for verb in verbs:
            until_allowed(plane, component, verb, resource, allowed=False)
        yield
    finally:
        plane.kubectl("replace", "-f", "-", input=json.dumps(role))
        for verb in verbs:
            until_allowed(plane, component, verb, resource, allowed=True)


@contextmanager
def claims_permitted(plane: ControlPlane) -> Iterator[None]:
    """Let core create claims during the block."""
    overlay = str(ROOT / "manifests" / "claims")
    plane.kubectl("apply", "-k", overlay)
    try:
        until_allowed(plane, "core", "create", "persistentvolumeclaims", allowed=True)
        yield
    finally:
        plane.kubectl("delete", "-k", overlay)
        until_allowed(plane, "core", "create", "persistentvolumeclaims", allowed=False)


def cut(role: dict[str, Any], resource: str, verbs: Collection[str]) -> dict[str, Any]:
    """Return the ClusterRole without these verbs on a resource, and without rules that have no verbs left."""
    plural, _, group = resource.partition("/")[0].partition(".")
    rules = []
    for rule in role["rules"]:
        if plural in rule["resources"] and group in rule["apiGroups"]:
            rule = {**rule, "verbs": [verb for verb in rule["verbs"] if verb not in verbs]}
        if rule["verbs"]:
            rules.append(rule)
    return {**role, "rules": rules}
