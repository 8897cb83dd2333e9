"""The list of images has every image of the manifests and every default that a provider renders, and no other."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from images.components import components

from kubefoundry_cli import upstream
from kubefoundry_cli.failure import Failure
from kubefoundry_cli.install import bundle
from kubefoundry_cli.model import valid_new
from kubefoundry_cli.providers import installed, probed
from kubefoundry_llamastack import distribution
from kubefoundry_sdk._api.images import OURS
from support.deployments import model_deployment
from support.upstream import PROVIDERS, standin

MANIFESTS: Final = Path(__file__).resolve().parents[2] / "manifests"
HARDWARE: Final = ({"gpu": {"count": 1}, "memory": "8Gi"}, {"memory": "8Gi", "cpu": "4"})


def test_list_is_up_to_date() -> None:
    written = (MANIFESTS / "images.txt").read_text()

    assert written == runpy.run_path(str(MANIFESTS / "images.py"))["text"]()


def test_list_has_each_image_of_the_manifests() -> None:
    named = {container["image"] for container in _containers()}

    assert named == {image for image in bundle.images() if image.startswith(OURS)}


def test_images_are_built_with_the_commands_of_the_manifests() -> None:
    started = {
        container["image"].removeprefix(OURS).partition(":")[0]: container["command"]
        for container in _containers()
    }

    assert started == {name: [component.program] for name, component in components().items()}


@pytest.mark.parametrize("name", bundle.providers())
def test_list_has_each_image_that_a_provider_renders(name: str) -> None:
    listed = {
        _untagged(image, name)
        for image, purpose in bundle.images().items()
        if f"provider {name}, " in purpose
    }

    assert {_untagged(image, name) for image in _rendered(name)} == listed


def test_list_has_each_distribution() -> None:
    assert set(distribution.IMAGES.values()) <= bundle.images().keys()


def _containers() -> Iterator[dict[str, Any]]:
    for path in MANIFESTS.rglob("*.yaml"):
        for document in yaml.safe_load_all(path.read_text()):
            if document and document["kind"] == "Deployment":
                yield from document["spec"]["template"]["spec"]["containers"]


def _rendered(name: str) -> set[str]:
    """Return the images of all engines on all hardware for models that name no image."""
    provider = installed()[name]
    schema = probed(provider, standin(name).document) if name in PROVIDERS else provider.upstream.schema
    assert schema is not None
    found: set[str] = set()
    for engine, resources in product(provider.capabilities.engines, HARDWARE):
        spec = {"model": {"id": "org/model"}, "engine": {"type": engine}, "resources": resources}
        try:
            obj = valid_new(model_deployment("m", "models", spec, uid="0", generation=1))
            objects = upstream.rendered(provider, obj, schema)
        except Failure:
            continue
        found |= set(_images([objects.main, *objects.helpers]))
    return found


def _images(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (found for key, found in value.items() if key == "image" and isinstance(found, str))
        yield from (found for inner in value.values() for found in _images(inner))
    elif isinstance(value, list):
        yield from (found for inner in value for found in _images(inner))


def _untagged(image: str, provider: str) -> str:
    """Return an image, without its tag for Dynamo, whose images have the tag of the installed operator."""
    return image.rpartition(":")[0] if provider == "dynamo" else image
