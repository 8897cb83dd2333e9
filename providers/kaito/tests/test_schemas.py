"""Rendered objects against the installed CRD's structural schema, unknown fields forbidden."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from kubefoundry_kaito.probe import ANY_MODEL, ENGINE_CONFIG, INSTANCE_TYPE_DEFAULT, probe
from kubefoundry_kaito.provider import provider
from kubefoundry_kaito.settings import Settings
from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._provider.reconcile.compatibility import check
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk.testing.generated import Spec, deployment, specs
from kubefoundry_sdk.testing.structural import violations
from support import upstream
from support.sampled_cases import examples
from support.upstream import UpstreamCRD

PROVIDERS = {
    "byo": provider(Settings()),
    "auto": provider(Settings(provisioning="auto", gpu_instance_type="gpu-1", cpu_instance_type="cpu-8")),
}

EXAMPLES = settings(max_examples=examples(200), print_blob=True)


def servable(spec: Spec, mode: str, schema: Schema, server: str) -> Spec:
    """The spec without what this KAITO refuses, so that every example is rendered."""
    overrides: Spec = {"llamacppServer": server}
    if mode == "byo" and INSTANCE_TYPE_DEFAULT in schema.features:
        overrides["preferredNodes"] = ["node-a"]
    spec = {
        **spec,
        "provider": {"name": "kaito", "overrides": overrides},
        "scaling": {"replicas": 1},
        "image": spec.get("image") or (None if _has_presets(spec, schema) else "example/engine:1"),
    }
    if spec["image"] is None:
        return _as_preset(spec, schema)
    if spec["engine"]["type"] == "llamacpp" and server == "aikit":
        spec["model"] = _without(spec["model"], "servedName", "storage")
    elif _has_refused_storage(spec):
        spec["model"] = _without(spec["model"], "storage")
    return spec


def _has_refused_storage(spec: Spec) -> bool:
    storage = spec["model"].get("storage", {})
    has_image = any("image" in volume for volume in storage.get("volumes", ()))
    return has_image or ("uri" in storage and spec["engine"]["type"] == "llamacpp")


def _without(part: Spec, *fields: str) -> Spec:
    return {key: value for key, value in part.items() if key not in fields}


def _has_presets(spec: Spec, schema: Schema) -> bool:
    return spec["engine"]["type"] == "vllm" and ENGINE_CONFIG in schema.features


def _as_preset(spec: Spec, schema: Schema) -> Spec:
    kept = {"model", "provider", "scaling", "serving", "nodeSelector"}
    args = {
        flag: text
        for flag, text in spec["engine"].get("args", {}).items()
        if text not in ("", "true", "false")
    }
    model = _without(spec["model"], "storage")
    if ANY_MODEL not in schema.features:
        model["id"] = "microsoft/phi-4"
    secrets = (
        {"secrets": spec["secrets"]} if "secrets" in spec and schema.api_version.endswith("beta1") else {}
    )
    return {
        **{field: value for field, value in spec.items() if field in kept},
        **secrets,
        "model": model,
        "engine": {**spec["engine"], "trustRemoteCode": True, "args": args, "extraArgs": []},
        "resources": {"gpu": {"count": spec["resources"]["gpu"]["count"]}},
    }


def wrong(subject: Provider, crd: UpstreamCRD, schema: Schema, spec: Spec) -> list[str]:
    compatibility = check(subject, deployment(spec), schema)
    assert compatibility.problems == ()
    main = subject.render(deployment(spec), schema).main
    return violations(upstream.schema(crd, schema.api_version.split("/")[1]), main)


CORPUS = specs(engines=("vllm", "llamacpp"), modes=("aggregated",))


def hold(crd: UpstreamCRD, data: DataObject) -> None:
    schema = probe(crd.document)
    assert isinstance(schema, Schema)
    mode = data.draw(st.sampled_from(sorted(PROVIDERS)))
    server = data.draw(st.sampled_from(["aikit", "llama-server"]))
    spec = servable(data.draw(CORPUS), mode, schema, server)

    assert wrong(PROVIDERS[mode], crd, schema, spec) == []


@settings(EXAMPLES, max_examples=examples(50))
@given(data=st.data())
def test_stand_in_takes_what_is_rendered(data: DataObject) -> None:
    hold(upstream.standin("kaito"), data)


@pytest.mark.upstream
@upstream.requires_shared
@pytest.mark.parametrize("crd", upstream.crds("kaito"), ids=str)
def test_every_release_takes_what_is_rendered(crd: UpstreamCRD) -> None:
    @EXAMPLES
    @given(data=st.data())
    def generated(data: DataObject) -> None:
        hold(crd, data)

    generated()
