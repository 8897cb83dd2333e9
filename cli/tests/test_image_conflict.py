"""A conflict about an image names --registry only where that option keeps the image."""

from __future__ import annotations

import pytest

from kubefoundry_cli.install.change import Change, _refused
from kubefoundry_sdk._api.images import in_registry
from kubefoundry_sdk._api.kinds import DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.errors import FIELD_CONFLICT, ApiError, Cause, Details

OURS = "kubefoundry/kubefoundry-provider-kaito:0.2.0"


def deployment(*images: str) -> Object:
    containers = [{"name": f"c{number}", "image": image} for number, image in enumerate(images)]
    meta = {"name": "kaito", "namespace": "kubefoundry-system"}
    return {"metadata": meta, "spec": {"template": {"spec": {"containers": containers}}}}


def refused(body: Object, live: Object | None) -> str:
    causes = (Cause(FIELD_CONFLICT, 'conflict with "set"', '.containers[name="c0"].image'),)
    error = ApiError(409, "Conflict", "Apply failed", details=Details(causes=causes))
    return _refused(error, Change(DEPLOYMENTS, body, live)).message


@pytest.mark.parametrize("registry", ["reg.example.com/kf", "reg.example.com:5000", "mirror"])
def test_other_registry_is_named_by_the_option(registry: str) -> None:
    message = refused(deployment(OURS), deployment(in_registry(OURS, registry)))

    assert f"keep the registry of an image with --registry {registry}; --force-conflicts" in message


@pytest.mark.parametrize(
    ("body", "live"),
    [
        pytest.param(
            deployment(OURS), deployment("reg.example.com/kf/kubefoundry-provider-kaito:0.1.9"), id="tag"
        ),
        pytest.param(deployment(OURS), deployment("reg.example.com/kf/other:0.2.0"), id="name"),
        pytest.param(deployment(OURS), deployment("kubefoundry-provider-kaito:0.2.0"), id="no registry"),
        pytest.param(
            deployment(OURS, OURS), deployment("a.io/x:1", in_registry(OURS, "b.io")), id="one of two"
        ),
        pytest.param(
            deployment(OURS, OURS),
            deployment(in_registry(OURS, "a.io"), in_registry(OURS, "b.io")),
            id="two hosts",
        ),
        pytest.param(
            deployment(in_registry(OURS, "a.io")),
            deployment("a.io/kubefoundry-provider-kaito:0.1.9"),
            id="followed",
        ),
    ],
)
def test_option_that_does_not_keep_the_image_is_not_named(body: Object, live: Object) -> None:
    message = refused(body, live)

    assert "--registry" not in message
    assert "--force-conflicts takes them over" in message
