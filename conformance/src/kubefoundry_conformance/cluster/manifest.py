"""What a manifest says of the subject: its process, its ServiceAccount, and what that may do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from kubefoundry_conformance.cases import Unusable
from kubefoundry_sdk.api.kinds import Object

Rule = dict[str, Any]
READS: Final = ("get", "list", "watch")


def checked(manifest: Sequence[Object], command: Sequence[str]) -> Sequence[Object]:
    """The manifest, where it has one Deployment whose process can be started here. Raises Unusable."""
    pod: Any = deployment_of(manifest)["spec"]["template"]["spec"]
    containers = pod.get("containers") or []
    if len(containers) != 1:
        raise Unusable(f"the Deployment has {len(containers)} containers: one can be started on this machine")
    if not command and not containers[0].get("command"):
        raise Unusable("the container states no command: give the one of its image with --command")
    containers[0].setdefault("command", ["none"])
    if not account_of(manifest):
        raise Unusable("the Deployment names no serviceAccountName: the subject needs an account of its own")
    return manifest


def deployment_of(manifest: Sequence[Object]) -> Object:
    """The one that runs the subject. Raises Unusable."""
    found = [document for document in manifest if document.get("kind") == "Deployment"]
    if len(found) != 1:
        raise Unusable(f"the manifest has {len(found)} Deployments: give the one that runs the subject")
    return found[0]


def account_of(manifest: Sequence[Object]) -> str:
    """The ServiceAccount of the manifest's Deployment, empty where it names none. Raises Unusable."""
    return str(deployment_of(manifest)["spec"]["template"]["spec"].get("serviceAccountName") or "")


def everywhere(manifest: Sequence[Object]) -> list[Rule]:
    """Rules that the account has in all namespaces. Raises Unusable for a role that the manifest does not hold."""
    return list(_bound(manifest, "ClusterRoleBinding"))


def inside(manifest: Sequence[Object]) -> list[Rule]:
    """Rules that the account has in one namespace. Raises Unusable for a role that the manifest does not hold."""
    return list(_bound(manifest, "RoleBinding"))


def _bound(manifest: Sequence[Object], kind: str) -> Iterator[Rule]:
    account = account_of(manifest)
    roles = {(one.get("kind"), one["metadata"]["name"]): one for one in manifest if one.get("metadata")}
    for binding in manifest:
        subjects = binding.get("subjects") or ()
        if binding.get("kind") != kind or not any(one.get("name") == account for one in subjects):
            continue
        named = (binding["roleRef"]["kind"], binding["roleRef"]["name"])
        if named not in roles:
            raise Unusable(f"the manifest binds {' '.join(named)}, and does not hold it: add it")
        yield from roles[named].get("rules") or ()


def reading(rules: Sequence[Rule]) -> list[Rule]:
    """What of the rules only reads."""
    found = []
    for rule in rules:
        verbs = READS if "*" in rule["verbs"] else [verb for verb in rule["verbs"] if verb in READS]
        if verbs and rule.get("resources"):
            found.append({**rule, "verbs": list(verbs)})
    return found


def writing(rules: Sequence[Rule], group: str, resource: str, name: str) -> list[Rule]:
    """What of the rules changes that one object, which is there already."""
    found = []
    for rule in rules:
        kept = [one for one in rule.get("resources") or () if one.partition("/")[0] in (resource, "*")]
        verbs = [verb for verb in rule["verbs"] if verb not in (*READS, "create", "deletecollection")]
        named = name in (rule.get("resourceNames") or [name])
        if kept and verbs and named and {group, "*"} & set(rule.get("apiGroups") or ()):
            found.append({"apiGroups": [group], "resources": kept, "verbs": verbs, "resourceNames": [name]})
    return found
