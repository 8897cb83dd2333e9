"""A model with an image as volume on an API server that does not store image volumes.

An API server of Kubernetes 1.31 to 1.34 drops the volume and its mounts without an error. A newer one does the same
where it emulates such a release, because the feature gate is off there. Kubernetes 1.26 refuses the field.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from kubefoundry_core.image_volumes import are_stored
from kubefoundry_local.control_plane import GIVEN, build, own_control_plane
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import DEPLOYMENTS, MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.deployments import CPU, model_deployment
from support.kubernetes_version import at_least
from support.waiting import message, reason, until, until_deployment
from support.wishes import change_spec

pytestmark = pytest.mark.integration

EMULATED: Final = "1.34"
"""The last release whose feature gate ImageVolume is off by default."""

PROGRAMS: Final = ("etcd", "kube-controller-manager", "kube-scheduler", "kubectl")
ASSETS: Final = "KUBEBUILDER_ASSETS"

IMAGE: Final = {"reference": "example.com/models/llama:1"}
STORAGE: Final = {"volumes": [{"name": "weights", "image": IMAGE, "purpose": "modelCache"}]}
POD_TEMPLATE: Final = {"spec": {"volumes": [{"name": "files", "image": IMAGE}]}}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """Core and provider direct on an API server without image volumes."""
    if os.environ.get(GIVEN):
        pytest.skip("a running cluster stores what it stores")
    folder = tmp_path_factory.mktemp("older")
    with pytest.MonkeyPatch.context() as patch:
        if at_least("1.35"):
            patch.setenv(ASSETS, str(_emulating(folder / "assets", EMULATED)))
        with own_control_plane(folder / "plane", ["--all-controllers"]) as plane:
            made = Suite(plane, folder / "suite")
            made.install_ground()
            try:
                made.start("core", "direct")
                yield made
            finally:
                made.stop()


def _emulating(folder: Path, release: str) -> Path:
    """Return a folder with the programs of a control plane whose API server emulates a release."""
    binary, assets = build(), os.environ.get(ASSETS)
    folder.mkdir()
    for name in PROGRAMS:
        (folder / name).symlink_to(Path(assets) / name if assets else binary)
    server = f"{assets}/kube-apiserver" if assets else f"{binary} kube-apiserver"
    script = folder / "kube-apiserver"
    script.write_text(f'#!/bin/sh\nexec {server} "$@" --emulated-version={release}\n')
    script.chmod(0o755)
    return folder


def with_image(namespace: str) -> Object:
    spec = {**CPU, "model": {**CPU["model"], "storage": STORAGE}}
    return model_deployment("m", namespace, spec, provider="direct")


@pytest.mark.parametrize(
    ("fields", "volume"),
    [({"model": {**CPU["model"], "storage": STORAGE}}, "weights"), ({"podTemplate": POD_TEMPLATE}, "files")],
)
async def test_image_is_refused_before_a_pod_exists(
    suite: Suite, api: Client, namespace: str, fields: dict[str, Any], volume: str
) -> None:
    body = model_deployment("m", namespace, {**CPU, **fields}, provider="direct")
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")

    refused = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "Validated") == "ImageVolumesUnsupported"
    )

    assert await are_stored(api, namespace, manager="test") is False
    assert message(refused, "Validated") == refused["status"]["message"]
    assert (
        f"volume {volume} is an image, and the API server of this cluster stores no image volumes"
        in message(refused, "Validated")
    )
    listed, _ = await api.list(DEPLOYMENTS, namespace)
    assert listed == []


async def test_model_starts_once_its_volume_is_a_claim(suite: Suite, api: Client, namespace: str) -> None:
    await api.create(MODEL_DEPLOYMENTS, with_image(namespace), manager="test")
    await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "Validated") == "ImageVolumesUnsupported"
    )

    claim = [{"name": "weights", "claimName": "w", "purpose": "modelCache"}]
    await change_spec(api, namespace, "/spec/model/storage/volumes", claim)

    created = await until(api, DEPLOYMENTS, "m", namespace, lambda obj: obj is not None)
    assert created
    volumes = created["spec"]["template"]["spec"]["volumes"]
    assert {"name": "weights", "persistentVolumeClaim": {"claimName": "w"}} in volumes


async def test_serving_model_keeps_its_pods_when_an_image_is_refused(
    suite: Suite, api: Client, namespace: str
) -> None:
    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("m", namespace, CPU, provider="direct"), manager="test"
    )
    created = await until(api, DEPLOYMENTS, "m", namespace, lambda obj: obj is not None)

    await change_spec(api, namespace, "/spec/model/storage", STORAGE)

    await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "Validated") == "ImageVolumesUnsupported"
    )
    after = await api.get(DEPLOYMENTS, "m", namespace)
    assert created and after["spec"] == created["spec"]
