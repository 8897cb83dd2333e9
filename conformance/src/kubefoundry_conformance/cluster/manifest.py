"""The subject's process, ServiceAccount and permissions, read from its manifest."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from kubefoundry_conformance.cases import Unusable
from kubefoundry_sdk._api.kinds import Object

Rule = dict[str, Any]
READS: Final = ("get", "list", "watch")


def checked(manifest: Sequence[Object], command: Sequence[str]) -> Sequence[Object]:
    """Return the manifest, completed by a command.

    Raises:
        Unusable: The manifest has no single Deployment whose process can be started on this machine.
    """
    pod: Any = deployment_of(manifest)["spec"]["template"]["spec"]
    containers = pod.get("containers") or []
    if len(containers) != 1:
        raise Unusable(f"the Deployment has {len(containers)} containers: one can be started on this machine")
    if not command and not containers[0].get("command"):
        raise Unusable("the container states no command: give the one of its image with --command")
    containers[0].setdefault("command", ["none"])
    _check_program(containers[0]["command"][0], command)
    if not account_of(manifest):
        raise Unusable("the Deployment names no serviceAccountName: the subject needs an account of its own")
    return manifest


def _check_program(installed: str, command: Sequence[str]) -> None:
    """Check that the subject's program exists, before a control plane is started for it.

    Args:
        installed: The program of the manifest, which its package installs next to this Python.
        command: Replaces it unless empty.

    Raises:
        Unusable: There is no such program.
    """
    folder = Path(sys.executable).parent
    if command and shutil.which(command[0]) is None:
        raise Unusable(
            f"--command: there is no program {command[0]} on PATH: correct it, or install it first"
        )
    if not command and shutil.which(folder / installed) is None:
        raise Unusable(
            f"the manifest's program {installed} is not in {folder}: install the provider's package into the "
            "environment of this kit, or name a program with --command"
        )


def deployment_of(manifest: Sequence[Object]) -> Object:
    """Return the Deployment that runs the subject.

    Raises:
        Unusable: The manifest does not have exactly one Deployment.
    """
    deployments = [document for document in manifest if document.get("kind") == "Deployment"]
    if len(deployments) != 1:
        raise Unusable(f"the manifest has {len(deployments)} Deployments: give the one that runs the subject")
    return deployments[0]


def arguments_of(manifest: Sequence[Object]) -> list[str]:
    """Return the arguments of the container, which follow its command or the one that replaces it.

    Raises:
        Unusable: The manifest does not have exactly one Deployment.
    """
    [container] = deployment_of(manifest)["spec"]["template"]["spec"]["containers"]
    return list(container.get("args") or ())


def account_of(manifest: Sequence[Object]) -> str:
    """Return the ServiceAccount of the Deployment, empty if it names none.

    Raises:
        Unusable: The manifest does not have exactly one Deployment.
    """
    return str(deployment_of(manifest)["spec"]["template"]["spec"].get("serviceAccountName") or "")


def cluster_rules(manifest: Sequence[Object]) -> list[Rule]:
    """Return the rules that the account has in all namespaces.

    Raises:
        Unusable: The manifest binds a role that it does not contain.
    """
    return list(_bound(manifest, "ClusterRoleBinding"))


def namespace_rules(manifest: Sequence[Object]) -> list[Rule]:
    """Return the rules that the account has in one namespace.

    Raises:
        Unusable: The manifest binds a role that it does not contain.
    """
    return list(_bound(manifest, "RoleBinding"))


def _bound(manifest: Sequence[Object], kind: str) -> Iterator[Rule]:
    account = account_of(manifest)
    roles = {
        (document.get("kind"), document["metadata"]["name"]): document
        for document in manifest
        if document.get("metadata")
    }
    for binding in manifest:
        subjects = binding.get("subjects") or ()
        if binding.get("kind") != kind or not any(subject.get("name") == account for subject in subjects):
            continue
        role = (binding["roleRef"]["kind"], binding["roleRef"]["name"])
        if role not in roles:
            raise Unusable(f"the manifest binds {' '.join(role)}, and does not hold it: add it")
        yield from roles[role].get("rules") or ()


def reading(rules: Sequence[Rule]) -> list[Rule]:
    """Reduce rules to their reading verbs."""
    reduced = []
    for rule in rules:
        verbs = READS if "*" in rule["verbs"] else [verb for verb in rule["verbs"] if verb in READS]
        if verbs and rule.get("resources"):
            reduced.append({**rule, "verbs": list(verbs)})
    return reduced


def writing(rules: Sequence[Rule], group: str, resource: str, name: str) -> list[Rule]:
    """Reduce rules to those that permit changes of one existing object."""
    reduced = []
    for rule in rules:
        if not _concerns(rule, group, name):
            continue
        resources = [
            permitted
            for permitted in rule.get("resources") or ()
            if permitted.partition("/")[0] in (resource, "*")
        ]
        verbs = [verb for verb in rule["verbs"] if verb not in (*READS, "create", "deletecollection")]
        if resources and verbs:
            reduced.append(
                {"apiGroups": [group], "resources": resources, "verbs": verbs, "resourceNames": [name]}
            )
    return reduced


def _concerns(rule: Rule, group: str, name: str) -> bool:
    """Check whether a rule is about the API group, and names this object or none."""
    groups, object_names = set(rule.get("apiGroups") or ()), rule.get("resourceNames") or [name]
    return bool({group, "*"} & groups) and name in object_names
