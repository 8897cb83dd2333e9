"""Renders a deployment as a DynamoGraphDeployment of the installed version."""

from __future__ import annotations

from kubefoundry_dynamo import v1alpha1, v1beta1, versions
from kubefoundry_dynamo.graph import graph, pools
from kubefoundry_dynamo.overrides import overrides_of
from kubefoundry_dynamo.probe import UPSTREAM
from kubefoundry_dynamo.settings import Settings
from kubefoundry_dynamo.versions import Runtime, release_line, runtime_of
from kubefoundry_sdk import Deployment, Rendered, Schema
from kubefoundry_sdk.pod import storage_notes

TRANSFORMERS = {"v1alpha1": v1alpha1.spec_of, "v1beta1": v1beta1.spec_of}


def render(deployment: Deployment, schema: Schema, settings: Settings) -> Rendered:
    """Return the DynamoGraphDeployment, in the version of the schema. Call it only if `supports` found no problem."""
    image, runtime = image_and_runtime(deployment, schema, settings)
    transform = TRANSFORMERS[schema.api_version.rpartition("/")[2]]
    main = {
        "apiVersion": schema.api_version,
        "kind": UPSTREAM.kind,
        "metadata": {"name": deployment.name},
        "spec": transform(graph(deployment, image, runtime), schema),
    }
    return Rendered(main, notes=_notes(deployment, image, runtime), image=image)


def image_and_runtime(deployment: Deployment, schema: Schema, settings: Settings) -> tuple[str, Runtime]:
    """Return the image of all components, and the Dynamo version inside it."""
    line = release_line(schema)
    image = deployment.spec.image or settings.default_image(deployment.spec.engine.type or "", line)
    stated = overrides_of(deployment.spec).runtime_version
    return image, runtime_of(
        image, line, settings.runtime_version or line, versions.parse(stated) if stated else None
    )


def _notes(deployment: Deployment, image: str, runtime: Runtime) -> tuple[str, ...]:
    notes = []
    if not runtime.from_tag and overrides_of(deployment.spec).runtime_version is None:
        notes.append(
            f"the tag of image {image} is not a plain Dynamo version: treated as Dynamo {runtime.version}, "
            "which provider.overrides.runtimeVersion can change"
        )
    if account := deployment.spec.pod_template.spec.service_account_name:
        notes.append(
            "Dynamo 1.0 and newer bind their own ServiceAccount to Role "
            f"{deployment.name}-k8s-service-discovery-role, by which pods find one another: "
            f"bind ServiceAccount {account} to it, too"
        )
    if overrides_of(deployment.spec).router_mode == "none":
        notes.append('Dynamo has no router mode "none": its own default applies')
    notes += storage_notes(deployment.spec, sum(pool.replicas for pool in pools(deployment.spec)))
    return tuple(notes)
