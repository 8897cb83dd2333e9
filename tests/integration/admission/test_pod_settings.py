"""A tenant's attempts to reach the node or another namespace by `spec.podTemplate`, on a real API server.

`kubectl` refuses unknown fields. A client that does not ask for this gets a warning, and the API server drops the
field before it stores the object.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubefoundry_local.control_plane import ControlPlane
from support.deployments import GPU, model_deployment

pytestmark = pytest.mark.integration

UNKNOWN: dict[str, dict[str, Any]] = {
    "spec.hostNetwork": {"spec": {"hostNetwork": True}},
    "spec.hostPID": {"spec": {"hostPID": True}},
    "spec.hostIPC": {"spec": {"hostIPC": True}},
    "spec.hostUsers": {"spec": {"hostUsers": True}},
    "spec.hostAliases": {"spec": {"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a"]}]}},
    "spec.nodeName": {"spec": {"nodeName": "node-a"}},
    "spec.initContainers": {"spec": {"initContainers": [{"name": "a", "image": "a"}]}},
    "spec.containers": {"spec": {"containers": [{"name": "a", "image": "a"}]}},
    "spec.ephemeralContainers": {"spec": {"ephemeralContainers": [{"name": "a"}]}},
    "spec.shareProcessNamespace": {"spec": {"shareProcessNamespace": True}},
    "spec.automountServiceAccountToken": {"spec": {"automountServiceAccountToken": True}},
    "spec.securityContext.sysctls": {"spec": {"securityContext": {"sysctls": [{"name": "a", "value": "b"}]}}},
    "spec.securityContext.seLinuxOptions": {
        "spec": {"securityContext": {"seLinuxOptions": {"type": "spc_t"}}}
    },
    "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespaces": {
        "spec": {
            "affinity": {
                "podAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"labelSelector": {}, "topologyKey": "zone", "namespaces": ["kube-system"]}
                    ]
                }
            }
        }
    },
    "container.securityContext.privileged": {"container": {"securityContext": {"privileged": True}}},
    "container.securityContext.procMount": {"container": {"securityContext": {"procMount": "Unmasked"}}},
    "container.securityContext.capabilities.add": {
        "container": {"securityContext": {"capabilities": {"add": ["SYS_ADMIN"], "drop": ["ALL"]}}}
    },
    "container.volumeDevices": {"container": {"volumeDevices": [{"name": "a", "devicePath": "/dev/a"}]}},
    "container.volumeMounts[0].mountPropagation": {
        "spec": {"volumes": [{"name": "a", "emptyDir": {}}]},
        "container": {
            "volumeMounts": [{"name": "a", "mountPath": "/a", "mountPropagation": "Bidirectional"}]
        },
    },
    **{
        f"spec.volumes[0].{source}": {"spec": {"volumes": [{"name": "a", "emptyDir": {}, source: content}]}}
        for source, content in {
            "hostPath": {"path": "/"},
            "nfs": {"server": "10.0.0.1", "path": "/"},
            "csi": {"driver": "secrets-store.csi.k8s.io"},
            "iscsi": {"targetPortal": "10.0.0.1", "iqn": "a", "lun": 0},
            "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]},
        }.items()
    },
}
"""Fields below `spec.podTemplate` that no ModelDeployment has."""

INVALID: dict[str, tuple[dict[str, Any], str]] = {
    "privilege escalation": (
        {"container": {"securityContext": {"allowPrivilegeEscalation": True}}},
        "allowPrivilegeEscalation may only be false",
    ),
    "no seccomp profile": (
        {"spec": {"securityContext": {"seccompProfile": {"type": "Unconfined"}}}},
        'Unsupported value: "Unconfined"',
    ),
    "a seccomp profile elsewhere": (
        {
            "spec": {
                "securityContext": {
                    "seccompProfile": {"type": "Localhost", "localhostProfile": "../../etc/passwd"}
                }
            }
        },
        "localhostProfile",
    ),
    "a mount that leaves its volume": (
        {
            "spec": {"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "c"}}]},
            "container": {"volumeMounts": [{"name": "a", "mountPath": "/a", "subPath": "../.."}]},
        },
        "subPath",
    ),
    "a mount over the root": (
        {
            "spec": {"volumes": [{"name": "a", "emptyDir": {}}]},
            "container": {"volumeMounts": [{"name": "a", "mountPath": "/"}]},
        },
        "mountPath",
    ),
    "a ServiceAccount of another namespace": (
        {"spec": {"serviceAccountName": "kube-system/admin"}},
        "serviceAccountName",
    ),
    "only a hostPath": (
        {"spec": {"volumes": [{"name": "a", "hostPath": {"path": "/"}}]}},
        "a volume requires exactly one of",
    ),
}
"""Values that the schema or a rule refuses, with a part of the message."""


def body(namespace: str, template: dict[str, Any]) -> dict[str, Any]:
    return model_deployment("m", namespace, {**GPU, "podTemplate": template})


@pytest.mark.parametrize("field", UNKNOWN)
def test_kubectl_refuses_dangerous_field_by_name(cluster: ControlPlane, field: str) -> None:
    answer = cluster.kubectl(
        "apply", "--dry-run=server", "-f", "-", input=json.dumps(body("default", UNKNOWN[field])), check=False
    )

    assert answer.returncode == 1
    assert f'unknown field "spec.podTemplate.{field}"' in answer.stderr


@pytest.mark.parametrize("field", UNKNOWN)
def test_dangerous_field_is_dropped_if_client_ignores_it(cluster: ControlPlane, field: str) -> None:
    sent = json.dumps(body("default", UNKNOWN[field]))

    answer = cluster.kubectl(
        *("create", "--dry-run=server", "--validate=ignore", "-o", "json", "-f", "-"), input=sent
    )

    name = field.rpartition(".")[2]
    stored = json.loads(answer.stdout)["spec"]["podTemplate"]
    assert f'"{name}"' in sent
    assert f'"{name}"' not in json.dumps(stored)


@pytest.mark.parametrize("case", INVALID)
def test_dangerous_value_is_refused(cluster: ControlPlane, case: str) -> None:
    template, message = INVALID[case]

    answer = cluster.kubectl(
        "apply",
        "--dry-run=server",
        "--validate=ignore",
        "-f",
        "-",
        input=json.dumps(body("default", template)),
        check=False,
    )

    assert answer.returncode == 1
    assert message in answer.stderr


def test_appliers_own_items_of_lists_by_their_keys(cluster: ControlPlane) -> None:
    sent = body("default", {})
    sent["metadata"]["name"] = "shared-lists"
    for name, path in (("a", "/a"), ("b", "/b")):
        sent["spec"]["podTemplate"] = {
            "spec": {
                "imagePullSecrets": [{"name": name}],
                "volumes": [{"name": name, "emptyDir": {}}],
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": name, "whenUnsatisfiable": "ScheduleAnyway"}
                ],
            },
            "container": {"volumeMounts": [{"name": name, "mountPath": path}]},
        }
        applied = cluster.kubectl(
            *("apply", "--server-side", f"--field-manager={name}", "-o", "json", "-f", "-"),
            input=json.dumps(sent),
        )

    template = json.loads(applied.stdout)["spec"]["podTemplate"]
    assert [item["name"] for item in template["spec"]["imagePullSecrets"]] == ["a", "b"]
    assert [item["name"] for item in template["spec"]["volumes"]] == ["a", "b"]
    assert [item["topologyKey"] for item in template["spec"]["topologySpreadConstraints"]] == ["a", "b"]
    assert [item["mountPath"] for item in template["container"]["volumeMounts"]] == ["/a", "/b"]
    cluster.kubectl("delete", "md", "shared-lists")
