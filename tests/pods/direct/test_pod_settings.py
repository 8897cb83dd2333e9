"""Settings of pods on a node: a ConfigMap of the tenant is mounted, and the server runs as the stated user."""

from __future__ import annotations

import pytest

from kubefoundry_nodes.llama.hub import Hub
from kubefoundry_sdk._api.kinds import CONFIG_MAPS
from kubefoundry_sdk._cluster.client import Client
from pods.direct.models import created, pods, running, tiny, words

pytestmark = pytest.mark.integration

CHECKED = 'test "$(cat /settings/word)" = hello && test "$(id -u)" = 2000 && exec /app/llama-server "$@"'
"""Starts the server if the container has the file and the user."""


async def test_config_map_is_mounted_and_user_is_set(api: Client, namespace: str, models: Hub) -> None:
    settings = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": namespace},
        "data": {"word": "hello"},
    }
    await api.create(CONFIG_MAPS, settings, manager="test")
    template = {
        "spec": {
            "securityContext": {"runAsUser": 2000},
            "volumes": [{"name": "settings", "configMap": {"name": "settings"}}],
        },
        "container": {"volumeMounts": [{"name": "settings", "mountPath": "/settings", "readOnly": True}]},
    }
    body = tiny(
        namespace,
        models,
        overrides={"command": ["/bin/sh", "-c", CHECKED, "server"]},
        podTemplate=template,
    )

    await created(api, body)
    await running(api, namespace)

    [pod] = await pods(api, namespace)
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
    assert "data:" in await words(api, namespace)
