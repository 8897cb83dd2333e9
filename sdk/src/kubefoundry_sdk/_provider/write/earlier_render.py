"""The render of the spec that was applied last: the base of the three-way merge (contract §4.13)."""

from __future__ import annotations

from dataclasses import replace

from pydantic import ValidationError

from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.equality import same
from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk._provider import propagation, results
from kubefoundry_sdk._provider.contract import Deployment, Provider, Rendered
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._provider.write.change import identity_changed


def pinned(deployment: Deployment, record: manifest.Record | None) -> Deployment:
    """Return the deployment with the default image that serves it, as if the user had set it.

    Return the deployment unchanged if the user sets an image now or did so in the applied spec, or if the applied
    manifest is replaced as a whole.
    """
    before = earlier_spec(deployment, record)
    if record is None or before is None or before.image or deployment.spec.image:
        return deployment
    return replace(deployment, spec=_with_image(deployment.spec, record.image))


def earlier_render(
    provider: Provider,
    deployment: Deployment,
    schema: Schema,
    record: manifest.Record | None,
    rendered: Rendered,
) -> Rendered | None:
    """Return this provider's render of the spec that was applied. `rendered` is that of the current deployment.

    Return None if the applied manifest is replaced as a whole, or if this provider cannot render that spec.
    """
    before = earlier_deployment(provider, deployment, record)
    if record is None or before is None:
        return None
    if before is deployment:
        return rendered
    if results.supports(provider, before, schema):
        return None
    earlier = results.render(provider, before, schema)
    # The upstream chose the image at that time, and the provider chooses it now. The two renders serve the model in
    # different ways, so the difference between them is not the user's change.
    if record.image is None and earlier.image is not None and not alike(earlier, rendered):
        return None
    return earlier


def earlier_deployment(
    provider: Provider, deployment: Deployment, record: manifest.Record | None
) -> Deployment | None:
    """Return the deployment as it was applied, or `deployment` itself if nothing that affects the render has changed.

    Return None if the applied manifest is replaced as a whole.
    """
    spec = earlier_spec(deployment, record)
    if record is None or spec is None:
        return None
    before = propagation.at_last_apply(provider.propagates, deployment, record.manifest)
    is_unchanged = before == deployment and same(record.spec, deployment.raw_spec)
    before = replace(before, spec=spec if spec.image else _with_image(spec, record.image))
    return deployment if is_unchanged and before.spec.image == deployment.spec.image else before


def alike(first: Rendered, second: Rendered) -> bool:
    """Check whether both renders have the same objects."""
    return same(first.main, second.main) and same(list(first.helpers), list(second.helpers))


def earlier_spec(deployment: Deployment, record: manifest.Record | None) -> ModelDeploymentSpec | None:
    """Return the spec that was applied, None if its manifest is replaced as a whole.

    That is so if the spec is unknown, or the user requests a refresh or changes the identity.
    """
    if record is None or record.refresh != deployment.annotations.get(names.REFRESH_ANNOTATION, ""):
        return None
    try:
        spec = ModelDeploymentSpec.model_validate(record.spec)
    except ValidationError:
        return None
    return None if identity_changed(spec, deployment.spec) else spec


def _with_image(spec: ModelDeploymentSpec, image: str | None) -> ModelDeploymentSpec:
    return spec.model_copy(update={"image": image})
