"""What a container on the node finds: variables, words, volumes, and what happens where they cannot be had."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_nodes.kubelet.environment import expand
from kubefoundry_nodes.kubelet.kubelet_client import CLAIMS
from kubefoundry_nodes.kubelet.runner import Node
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, SECRETS
from kubefoundry_sdk._cluster.client import Client
from pods.example_pods import CLAIM, PLAIN, READY, config_map, container, pod, run, secret, seen, waits
from support.waiting import until

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def _image(node: Node) -> None:
    node.add(PLAIN)


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)", "1"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$$$$(A)", "$$(A)"),
        ("$(MISSING)", "$(MISSING)"),
        ("$(A", "$(A"),
        ("$()", "$()"),
        ("$A ${A} $", "$A ${A} $"),
        ("$(B)$(A)", "$(A)1"),
        ("$($(A))", "$($(A))"),
        ("é$é(A)", "é$é(A)"),
    ],
)
def test_expansion(text: str, expanded: str) -> None:
    assert expand(text, {"A": "1", "B": "$(A)"}) == expanded


async def test_variables_and_words_are_expanded_in_their_order(
    api: Client, namespace: str, node: Node
) -> None:
    await api.create(
        CONFIG_MAPS, config_map(namespace, "values", {"FROM": "$(HOME)", "KEY": "of map"}), manager="test"
    )
    await api.create(SECRETS, secret(namespace, "hidden", {"token": "s3cr$(et)"}), manager="test")
    names = [*"ABCDEFG", "MY_FROM"]
    program = f"import os, sys; print(*sys.argv[1:], *(os.environ.get(k, '-') for k in {names}), sep='|')"
    main = {
        "name": "main",
        "image": PLAIN.name,
        "command": ["python3", "-c", program, "$(A)", "$$(A)"],
        "args": ["$(MISSING)", "$(C)", "$(KUBERNETES_SERVICE_PORT)"],
        "envFrom": [{"configMapRef": {"name": "values"}, "prefix": "MY_"}],
        "env": [
            {"name": "A", "value": "$(B)"},
            {"name": "B", "value": "b$$"},
            {"name": "C", "value": "$(B)$(MY_FROM)"},
            {"name": "D", "valueFrom": {"secretKeyRef": {"name": "hidden", "key": "token"}}},
            {"name": "E", "valueFrom": {"configMapKeyRef": {"name": "values", "key": "KEY"}}},
            {"name": "F", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
            {"name": "G", "valueFrom": {"secretKeyRef": {"name": "no", "key": "no", "optional": True}}},
        ],
    }

    made = await run(
        api, pod(namespace, main, restartPolicy="Never"), lambda s: s.get("phase") == "Succeeded"
    )

    said = node.log(namespace, made["metadata"]["name"], "main").strip().split("|")
    assert said[:5] == ["$(B)", "$(A)", "$(MISSING)", "b$$(HOME)", "443"]
    assert said[5:] == [
        "$(B)",
        "b$",
        "b$$(HOME)",
        "s3cr$(et)",
        "of map",
        made["metadata"]["name"],
        "-",
        "$(HOME)",
    ]


async def test_volumes(api: Client, namespace: str, node: Node) -> None:
    await api.create(CONFIG_MAPS, config_map(namespace, "values", {"a": "A", "b": "B"}), manager="test")
    await api.create(SECRETS, secret(namespace, "hidden", {"token": "T"}), manager="test")
    await api.create(CLAIMS, {**CLAIM, "metadata": {"name": "data", "namespace": namespace}}, manager="test")
    volumes = [
        {
            "name": "map",
            "configMap": {"name": "values", "items": [{"key": "a", "path": "in/a"}], "defaultMode": 0o640},
        },
        {"name": "whole", "configMap": {"name": "values"}},
        {"name": "missing", "configMap": {"name": "no", "optional": True}},
        {"name": "secret", "secret": {"secretName": "hidden", "defaultMode": 0o400}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "small", "emptyDir": {"sizeLimit": "1Mi"}},
    ]
    mounts = [
        *({"name": one["name"], "mountPath": f"/v/{one['name']}"} for one in volumes),
        {"name": "whole", "mountPath": "/v/one", "subPath": "b"},
        {"name": "data", "mountPath": "/v/sub", "subPath": "x/y", "readOnly": True},
    ]
    script = """
        cat /v/map/in/a /v/whole/a /v/whole/b /v/secret/token /v/one; echo
        stat -Lc %a /v/map/in/a /v/secret/token; ls -A /v/missing /v/map
        touch /v/whole/new /v/sub/new 2>&1 | grep -c 'Read-only file system'
        head -c 2M /dev/zero > /v/small/big 2>&- || stat -c %s /v/small/big
        cat /v/data/kept 2>&- || echo kept > /v/data/kept; ls -d /v/data/x/y
        cat /var/run/secrets/kubernetes.io/serviceaccount/namespace; echo
        touch /new 2>&1 | grep -c 'Read-only'; id -u; id -G
        """
    secured = {"runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 1001}
    main = container("main", script, volumeMounts=mounts, securityContext={"readOnlyRootFilesystem": True})

    logs = []
    for _ in range(2):
        body = pod(namespace, main, volumes=volumes, restartPolicy="Never", securityContext=secured)
        made = await run(api, body, lambda status: status.get("phase") in ("Succeeded", "Failed"))
        logs.append(node.log(namespace, made["metadata"]["name"], "main").split())

    # A group that the volumes belong to can read what the modes keep from others.
    expected = ["AABTB", "640", "440", "/v/map:", "..2026_01_01_00_00_00.0000000001", "..data", "in"]
    expected += ["/v/missing:", "..2026_01_01_00_00_00.0000000001", "..data", "2", str(1 << 20)]
    rest = ["/v/data/x/y", namespace, "1", "1000", "1000", "1001"]
    assert logs == [[*expected, *rest], [*expected, "kept", *rest]]
    claim = await until(api, CLAIMS, "data", namespace, lambda one: one is not None)
    assert claim is not None and claim["status"]["phase"] == "Bound"


@pytest.mark.parametrize(
    ("fields", "reported"),
    [
        ({"envFrom": [{"secretRef": {"name": "no"}}]}, 'secret "no" not found'),
        ({"securityContext": {"runAsNonRoot": True}}, "container has runAsNonRoot and image will run as root"),
    ],
)  # fmt: skip
async def test_invalid_container_is_reported(
    api: Client, namespace: str, fields: dict[str, Any], reported: str
) -> None:
    main = container("main", "exec sleep infinity", **fields)
    made = await run(api, pod(namespace, main), lambda status: waits(status) == "CreateContainerConfigError")
    assert reported in made["status"]["containerStatuses"][0]["state"]["waiting"]["message"]


async def test_pod_starts_once_its_secret_exists(api: Client, namespace: str) -> None:
    wanted = [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "late", "key": "k"}}}]
    body = pod(namespace, container("main", 'test "$A" = v; exec sleep infinity', env=wanted))
    made = await run(api, body, lambda status: waits(status) == "CreateContainerConfigError")

    await api.create(SECRETS, secret(namespace, "late", {"k": "v"}), manager="test")

    await seen(api, made, READY)
