"""Checks that the cluster has image volumes before `Validated` lets a provider use one.

One answer of the API server counts for all models. A spec that is valid already is not checked again, because a
serving model must not lose `Validated` by a check.

An API server without the field refuses it. One whose feature gate ImageVolume is off drops the volume together with
its mounts, without an error: an operator's pods would start without their weights. Only a dry run shows the
difference, because schema and release are the same with and without the gate.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from kubefoundry_core.claims import Outcome
from kubefoundry_sdk._api import names, reasons
from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._api.untrusted import mappings, part
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError, Fenced, Unreachable

AGAIN: Final = 60.0
"""Seconds after which the API server is asked again, unless it has image volumes: an administrator may upgrade it."""

POD_TEMPLATES: Final = Kind("", "v1", "podtemplates", "PodTemplate", built_in=True)
"""A kind that no controller acts on, so that the permission to create it permits nothing else."""

_NAME: Final = "weights"

_UNKNOWN: Final = "unknown field"
"""Part of the API server's message about a field that its release lacks. That error has no reason of its own."""


class ImageVolumes:
    """Remembers whether the API server stores image volumes.

    Args:
        client: The client.
        namespace: Core's namespace, in which it may create PodTemplates.
        clock: Returns monotonic seconds.
    """

    def __init__(self, client: Client, namespace: str, clock: Callable[[], float]) -> None:
        self._client = client
        self._namespace = namespace
        self._clock = clock
        self._are_stored: bool | None = None
        self._due = float("-inf")
        self._asking = asyncio.Lock()

    async def check(self, live: Object) -> Outcome:
        """Return why a ModelDeployment cannot have its image volumes, if the API server's answer shows it.

        Raises:
            Fenced: This replica may not write.
        """
        view = LiveModelDeployment(live)
        volume = next(iter(image_volumes(live.get("spec"))), None)
        if volume is None or view.is_deleting:
            return Outcome()
        if view.is_true(reasons.VALIDATED, generation=view.generation):
            return Outcome()
        # Every model waits for the first answer: without it, one could become valid while another asks.
        async with self._asking:
            if self._are_stored is not True and self._clock() >= self._due:
                self._due = self._clock() + AGAIN
                self._are_stored = await are_stored(self._client, self._namespace, manager=names.CORE_MANAGER)
        if self._are_stored is not False:
            return Outcome()
        return Outcome(
            f"volume {volume} is an image, and the API server of this cluster stores no image volumes: use a claim, "
            "or ask an administrator for Kubernetes 1.35 or newer (from 1.31 on, the feature gate ImageVolume)",
            self._due - self._clock(),
            reasons.IMAGE_VOLUMES_UNSUPPORTED,
        )


def image_volumes(spec: Any) -> list[str]:
    """Return the names of the volumes that are images, whatever the spec holds otherwise."""
    root = {"spec": spec}
    listed = (
        part(root, "spec", "model", "storage").get("volumes"),
        part(root, "spec", "podTemplate", "spec").get("volumes"),
    )
    return [
        str(volume.get("name"))
        for volumes in listed
        for volume in mappings(volumes)
        if isinstance(volume.get("image"), dict)
    ]


async def are_stored(client: Client, namespace: str, *, manager: str) -> bool | None:
    """Send a PodTemplate with an image volume as a dry run, and check whether the API server keeps the volume.

    Args:
        client: The client.
        namespace: A namespace in which the caller may create PodTemplates.
        manager: The field manager.

    Returns:
        None if the answer shows neither: no permission, a policy, or no answer.

    Raises:
        Fenced: This replica may not write.
    """
    container = {
        "name": "engine",
        "image": "example.com/engine:1",
        "volumeMounts": [{"name": _NAME, "mountPath": "/weights"}],
    }
    volume = {"name": _NAME, "image": {"reference": "example.com/weights:1"}}
    body = {
        "apiVersion": POD_TEMPLATES.api_version,
        "kind": POD_TEMPLATES.kind,
        "metadata": {"generateName": "kubefoundry-image-volume-", "namespace": namespace},
        "template": {
            "metadata": {"labels": {"app.kubernetes.io/part-of": "kubefoundry"}},
            "spec": {"containers": [container], "volumes": [volume]},
        },
    }
    try:
        stored = await client.create(POD_TEMPLATES, body, manager=manager, dry_run=True)
    except Fenced:
        raise
    except (ApiError, Unreachable) as error:
        is_unknown = isinstance(error, ApiError) and error.code == 400 and _UNKNOWN in error.message
        return False if is_unknown else None
    return any(
        each.get("name") == _NAME and each.get("image")
        for each in mappings(part(stored, "template", "spec").get("volumes"))
    )
