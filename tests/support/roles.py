"""What our components may do, changed for a while: in force when the API server itself says so."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from kubefoundry_local.control_plane import ControlPlane
from kubefoundry_local.suite import NAMESPACE, PROBE
from support.waiting import SECONDS


def until_allowed(
    plane: ControlPlane, component: str, verb: str, resource: str, *, allowed: bool, namespace: str = ""
) -> None:
    """Returns once the API server, which learns of roles in its own time, answers so; without a namespace for all.

    component: as its ServiceAccount is called, `provider-kaito`. resource: `workspaces.kaito.sh`, and where only one
    object is meant `deployments.apps/kaito-workspace`.
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
    """Takes these verbs on a resource from the component's ClusterRole for the time of the block."""
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


def cut(role: dict[str, Any], resource: str, verbs: Collection[str]) -> dict[str, Any]:
    """The ClusterRole without these verbs on a resource, and without rules that say nothing any more."""
    plural, _, group = resource.partition("/")[0].partition(".")
    rules = []
    for rule in role["rules"]:
        if plural in rule["resources"] and group in rule["apiGroups"]:
            rule = {**rule, "verbs": [verb for verb in rule["verbs"] if verb not in verbs]}
        if rule["verbs"]:
            rules.append(rule)
    return {**role, "rules": rules}
