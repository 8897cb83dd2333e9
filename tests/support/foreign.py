"""Upstream objects that an administrator has written by hand."""

from __future__ import annotations

from typing import Any, Final

from kubefoundry_sdk._api.kinds import Object
from support.kinds import UPSTREAM

_CONTAINER: Final = {"name": "main", "image": "example.com/other:1.0.0"}

_CONTENT: Final[dict[str, dict[str, Any]]] = {
    "kaito": {
        "resource": {"labelSelector": {"matchLabels": {"kubernetes.io/os": "linux"}}},
        "inference": {"template": {"spec": {"containers": [_CONTAINER]}}},
    },
    "dynamo": {
        "spec": {
            "backendFramework": "vllm",
            "services": {"Worker": {"componentType": "worker", "replicas": 1}},
        }
    },
    "kuberay": {
        "spec": {
            "serveConfigV2": "applications: []",
            "rayClusterConfig": {
                "headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [_CONTAINER]}}}
            },
        }
    },
}


def foreign(provider: str, name: str, namespace: str) -> Object:
    """Return an object of the provider's upstream kind to create."""
    kind = UPSTREAM[provider]
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name, "namespace": namespace},
        **_CONTENT[provider],
    }
