"""An example provider and its plans. Each plan starts from the objects that an earlier plan applied."""

from __future__ import annotations

from typing import Any

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk._provider import results
from kubefoundry_sdk._provider.contract import Capabilities, Deployment, Observation, Provider, Rendered
from kubefoundry_sdk._provider.reconcile import compatibility
from kubefoundry_sdk._provider.upstream_kind import Schema, UpstreamKind
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._provider.write.earlier_render import pinned
from kubefoundry_sdk._provider.write.plan import Plan, plan

V1 = Schema("example.com/v1")
V2 = Schema("example.com/v2")
SPEC: dict[str, Any] = {
    "model": {"id": "org/m"},
    "engine": {"type": "vllm"},
    "resources": {"gpu": {"count": 1}},
}


def provider(default_image: str = "default:1", flag: str = "") -> Provider:
    """Return a provider with a main object and a helper. Its context length cannot change in place."""

    def render(deployment: Deployment, schema: Schema) -> Rendered:
        spec = deployment.spec
        image = spec.image or default_image
        main = {
            "apiVersion": schema.api_version,
            "kind": "Engine",
            "metadata": {"name": deployment.name},
            "spec": {
                "groups": [{"group": "gpu", "image": image, "replicas": spec.scaling.replicas}],
                "context": spec.engine.context_length or 0,
                "runtime": f"for {image}{flag}",
                "serve": spec.scaling.replicas,
            },
        }
        helper = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{deployment.name}-config"},
            "data": {"served": spec.served_name or ""},
        }
        return Rendered(main, (helper,), image=image)

    def recreate(old: Rendered, new: Rendered) -> str | None:
        return "context" if old.main["spec"]["context"] != new.main["spec"]["context"] else None

    def observe(deployment: Deployment, live: Object) -> Observation:
        raise AssertionError("a plan observes nothing")

    return Provider(
        name="example",
        title="Example",
        version="0.1.0",
        documentation="",
        capabilities=Capabilities(("vllm", "sglang"), ("aggregated",), False, True),
        upstream=UpstreamKind("example.com", "engines", "Engine"),
        probe=lambda crd: V1,
        supports=lambda deployment, schema: (),
        render=render,
        observe=observe,
        recreate=recreate,
        ignored_differences=("spec.groups[*].replicas",),
        helper_kinds=("ConfigMap",),
    )


def deployment(spec: dict[str, Any] | None = None, **metadata: Any) -> Deployment:
    """Return a ModelDeployment with SPEC and these fields of the spec."""
    raw = {**SPEC, **(spec or {})}
    return Deployment("m", "n", "uid", 1, ModelDeploymentSpec.model_validate(raw), raw_spec=raw, **metadata)


def planned(
    model: Deployment, live: Plan | None = None, subject: Provider | None = None, schema: Schema = V1
) -> Plan:
    """Return the plan for a model whose upstream objects are those of an earlier plan."""
    subject = subject or provider()
    main = live.main if live else None
    helpers = live.helpers if live else []
    record = manifest.applied(main) if main else None
    pinned_model = pinned(model, record)
    subject = compatibility.as_written(subject, pinned_model, schema, record, main)
    rendered = results.render(subject, pinned_model, schema)
    return plan(subject, pinned_model, schema, rendered, main, helpers)


def changed(todo: Plan) -> list[str]:
    """Return the kinds of the changed objects."""
    return [obj["kind"] for obj in todo.changed]


def image(todo: Plan) -> str:
    """Return the image of the main object."""
    return str(todo.main["spec"]["groups"][0]["image"])
