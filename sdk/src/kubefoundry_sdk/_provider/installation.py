"""The objects that install a provider, generated from the `Provider`: account, least privileges, Lease, Deployment.

The permissions are derived from the `Provider`: all that it watches and writes, and nothing more (contract §1).
"""

from __future__ import annotations

from typing import Any, Final

from kubefoundry_sdk._api.kinds import HELPER_KINDS, WORKLOADS, Object
from kubefoundry_sdk._api.names import SYSTEM_NAMESPACE
from kubefoundry_sdk._provider.contract import Provider

_READ: Final = ["get", "list", "watch"]
_OWN: Final = [*_READ, "create", "patch", "delete"]
_NON_ROOT: Final = 65532
"""User and group of distroless and of our own images."""


def manifest(
    provider: Provider, image: str, *, namespace: str = SYSTEM_NAMESPACE, kopf: str | None = None
) -> list[Object]:
    """Return the objects of the process `kubefoundry-provider-NAME`, in the order in which to apply them.

    Args:
        provider: The provider.
        image: An image with the console script of that name on its PATH; with `kopf`, an image with kopf.
        namespace: The namespace of the process.
        kopf: The path in the image of an operator in kopf that runs the provider with
            `Settings.from_environment()`. Add the permissions of the operator's own handlers.
    """
    name = f"kubefoundry-provider-{provider.name}"
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "kubefoundry"}
    inside = {"name": name, "namespace": namespace, "labels": labels}
    outside = {"name": name, "labels": labels}
    account = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    group = "rbac.authorization.k8s.io"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": inside},
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRole",
            "metadata": outside,
            "rules": cluster_rules(provider, in_kopf=kopf is not None),
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": outside,
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [account],
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": "Role",
            "metadata": inside,
            "rules": [
                _rule("coordination.k8s.io", ["leases"], ["get", "update"], [name]),
                _rule("coordination.k8s.io", ["leases"], ["create"]),
            ],
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": inside,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
            "subjects": [account],
        },
        _deployment(inside, labels, _container(name, image, kopf), once=kopf is not None),
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": inside,
            "spec": {
                "maxUnavailable": 1,
                "selector": {"matchLabels": {"app.kubernetes.io/name": name}},
            },
        },
        *_roles_of_users(provider, labels),
    ]


def _roles_of_users(provider: Provider, labels: dict[str, str]) -> list[Object]:
    """Return the roles with which users can see and eject the upstream objects of their models.

    Kubernetes aggregates them into its roles view, edit and admin. These already include built-in kinds, so such a
    provider needs none.
    """
    upstream = provider.upstream
    if upstream.version is not None:
        return []
    return [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {
                "name": f"kubefoundry-provider-{provider.name}-{role}",
                "labels": {
                    "app.kubernetes.io/part-of": labels["app.kubernetes.io/part-of"],
                    **{f"rbac.authorization.k8s.io/aggregate-to-{to}": "true" for to in added_to},
                },
            },
            "rules": [_rule(upstream.group, [upstream.plural], verbs)],
        }
        for role, added_to, verbs in (
            ("view", ("view", "edit", "admin"), _READ),
            # delete: required to change owner references if OwnerReferencesPermissionEnforcement is on
            ("edit", ("edit", "admin"), ["patch", "delete"]),
        )
    ]


def cluster_rules(provider: Provider, *, in_kopf: bool = False) -> list[dict[str, Any]]:
    """Return the rules of its ClusterRole. RBAC cannot restrict a create by name, or a namespace by label.

    kopf lists and watches all CRDs to find the kinds of its handlers, so it needs the rule without names.
    """
    upstream, ours = provider.upstream, "kubefoundry.ai"
    rules = [
        _rule(ours, ["modeldeployments"], [*_READ, "patch"]),
        _rule(ours, ["modeldeployments/status"], ["patch"]),
        _rule(ours, ["modeldeployments/finalizers"], ["update"]),
        _rule(ours, ["inferenceproviderconfigs"], ["create"]),
        _rule(
            ours,
            ["inferenceproviderconfigs", "inferenceproviderconfigs/status"],
            ["get", "patch"],
            [provider.name],
        ),
        _rule(upstream.group, [upstream.plural], _OWN),
        _rule("events.k8s.io", ["events"], ["create"]),
    ]
    crds = [
        *([upstream.crd] if upstream.version is None else []),
        *([WORKLOADS.crd] if provider.queued else []),
    ]
    if crds or in_kopf:
        names = None if in_kopf else crds
        rules.append(_rule("apiextensions.k8s.io", ["customresourcedefinitions"], _READ, names))
    rules += [
        _rule(kind.group, [kind.plural], _OWN)
        for kind in map(HELPER_KINDS.__getitem__, provider.helper_kinds)
    ]
    if "Service" not in provider.helper_kinds:
        # to verify endpoints
        rules.append(_rule("", ["services"], ["get"]))
    return [*rules, *_rules_to_watch(provider)]


def _rules_to_watch(provider: Provider) -> list[dict[str, Any]]:
    """Return the rules for objects that the provider only reads."""
    rules = []
    if provider.pods:
        watched = ["pods", "events"] if provider.pods.creation_events else ["pods"]
        rules.append(_rule("", watched, ["list", "watch"]))
    if provider.queued:
        rules.append(_rule(WORKLOADS.group, [WORKLOADS.plural], ["list", "watch"]))
    if provider.operator:
        verbs = _READ if provider.operator.read else ["list", "watch"]
        rules.append(_rule("apps", ["deployments"], verbs, [provider.operator.deployment]))
        rules.append(_rule("", ["namespaces"], ["list", "watch"]))
        if provider.operator.lease:
            rules.append(
                _rule("coordination.k8s.io", ["leases"], ["list", "watch"], [provider.operator.lease])
            )
    return rules


def _rule(
    group: str, resources: list[str], verbs: list[str], names: list[str] | None = None
) -> dict[str, Any]:
    named = {"resourceNames": names} if names else {}
    return {"apiGroups": [group], "resources": resources, **named, "verbs": list(verbs)}


def _container(name: str, image: str, kopf: str | None) -> Object:
    def probe(path: str, **times: int) -> Object:
        return {"httpGet": {"path": path, "port": "health"}, **times}

    # The identity of the Lease's holder: a restarted container gets its own Lease back immediately.
    env: list[Object] = [
        {"name": "POD_UID", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.uid"}}}
    ]
    command, args = [name], ["--leader-elect=true", "--log-format=json"]
    if kopf is not None:
        # kopf rejects flags that it does not know, so the provider's flags are variables.
        command, args = ["kopf", "run", "--standalone", "--all-namespaces", "--log-format=json", kopf], []
        env.append({"name": "KUBEFOUNDRY_LEADER_ELECT", "value": "true"})
    return {
        "name": name.removeprefix("kubefoundry-"),
        "image": image,
        "command": command,
        **({"args": args} if args else {}),
        "env": env,
        "ports": [
            {"name": "metrics", "containerPort": 8080},
            {"name": "health", "containerPort": 8081},
        ],
        "livenessProbe": probe("/healthz", initialDelaySeconds=10, periodSeconds=20),
        "readinessProbe": probe("/readyz", periodSeconds=5),
        "resources": {
            "requests": {"cpu": "50m", "memory": "96Mi" if kopf is None else "128Mi"},
            "limits": {"memory": "256Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def _deployment(meta: Object, labels: dict[str, str], container: Object, *, once: bool) -> Object:
    """Return the Deployment. `once`: never run two replicas, because kopf's own handlers hold no Lease."""
    pod = {
        "serviceAccountName": meta["name"],
        "terminationGracePeriodSeconds": 10,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _NON_ROOT,
            "runAsGroup": _NON_ROOT,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta,
        "spec": {
            "replicas": 1,
            **({"strategy": {"type": "Recreate"}} if once else {}),
            "selector": {"matchLabels": {"app.kubernetes.io/name": meta["name"]}},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
