"""An example provider, and the plans of its runtime: what one plan applied lives when the next one is made."""

from __future__ import annotations

from typing import Any

from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk.provider.contract import Capabilities, Deployment, Observation, Provider, Rendered
from kubefoundry_sdk.provider.upstream_kind import Schema, UpstreamKind
from kubefoundry_sdk.provider.write import manifest
from kubefoundry_sdk.provider.write.earlier_render import pinned
from kubefoundry_sdk.provider.write.plan import Plan, plan

V1 = Schema("example.com/v1")
V2 = Schema("example.com/v2")
SPEC: dict[str, Any] = {
    "model": {"id": "org/m"},
    "engine": {"type": "vllm"},
    "resources": {"gpu": {"count": 1}},
}


def provider(default_image: str = "default:1", flag: str = "") -> Provider:
    """A provider of two parts, one of them a helper. Its context length cannot change in place."""

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
    raw = {**SPEC, **(spec or {})}
    return Deployment("m", "n", "uid", 1, ModelDeploymentSpec.model_validate(raw), raw_spec=raw, **metadata)


def planned(
    wanted: Deployment, live: Plan | None = None, subject: Provider | None = None, schema: Schema = V1
) -> Plan:
    """The plan for `wanted`, where what an earlier plan applied lives upstream."""
    subject = subject or provider()
    main = live.main if live else None
    helpers = live.helpers if live else []
    record = manifest.applied(main) if main else None
    pinned_to_it = pinned(wanted, record)
    rendered = subject.render(pinned_to_it, schema)
    return plan(subject, pinned_to_it, schema, rendered, main, helpers)


def changed(todo: Plan) -> list[str]:
    return [obj["kind"] for obj in todo.changed]


def image(todo: Plan) -> str:
    return str(todo.main["spec"]["groups"][0]["image"])
