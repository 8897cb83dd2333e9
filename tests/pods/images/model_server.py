"""The image of an engine that a ModelDeployment stands for, and the pod and Service that its operator would make."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from kubefoundry_nodes.images import layer
from kubefoundry_nodes.kubelet.image import Image
from kubefoundry_sdk._api.kinds import Object
from pods.images import engine

NAME: Final = "example.com/engine:1"
PORT: Final = 8080
PROGRAM: Final = "/opt/engine.py"


def image(folder: Path) -> Image:
    """folder: for its layer."""
    own = layer.write(folder, {PROGRAM: Path(engine.__file__).read_bytes()})
    return Image(NAME, (own,), entrypoint=("python3", PROGRAM))


def objects(name: str, namespace: str, model: str, port: int) -> list[Object]:
    """A pod that serves the model and signs its answers with its name, behind a Service of that name and port."""
    labels = {"app": name}
    env = {"NAME": name, "MODEL": model, "PORT": str(PORT)}
    probe = {"httpGet": {"path": "/v1/models", "port": PORT}, "periodSeconds": 1}
    container: dict[str, Any] = {
        "name": "engine",
        "image": NAME,
        "env": [{"name": key, "value": value} for key, value in env.items()],
        "readinessProbe": probe,
    }
    meta = {"name": name, "namespace": namespace, "labels": labels}
    ports = [{"port": port, "targetPort": PORT}]
    return [
        {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container]}},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta,
            "spec": {"selector": labels, "ports": ports},
        },
    ]
