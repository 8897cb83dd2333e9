"""A mirror of the hub, a proxy and a CA bundle reach every pod that reads them, with each provider and engine."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from kubefoundry_cli import upstream
from kubefoundry_cli.providers import named
from kubefoundry_sdk._api.equality import same
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._provider import results
from kubefoundry_sdk._provider.contract import Provider, Rendered
from kubefoundry_sdk._provider.reconcile.compatibility import check
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk.testing.generated import deployment
from support.plans import deployment as of_plan
from support.plans import planned
from support.upstream import probed_schemas

FLAGS = {
    "--pod-hf-endpoint": "https://hub.example.com/hf",
    "--pod-https-proxy": "http://proxy.example.com:3128",
    "--pod-no-proxy": ".svc,10.0.0.0/8",
    "--pod-ca-bundle": "company-ca/ca.crt",
}
CA_FILE = "/etc/kubefoundry/ca/ca-bundle.crt"
VARIABLES = {
    "HF_ENDPOINT": "https://hub.example.com/hf",
    "HTTPS_PROXY": "http://proxy.example.com:3128",
    "https_proxy": "http://proxy.example.com:3128",
    "NO_PROXY": ".svc,10.0.0.0/8",
    "no_proxy": ".svc,10.0.0.0/8",
    **dict.fromkeys(["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE"], CA_FILE),
}
VOLUME = {
    "name": "kubefoundry-ca-bundle",
    "configMap": {"name": "company-ca", "items": [{"key": "ca.crt", "path": "ca-bundle.crt"}]},
}
MOUNT = {"name": "kubefoundry-ca-bundle", "mountPath": "/etc/kubefoundry/ca", "readOnly": True}
GPU = {"resources": {"gpu": {"count": 1}, "memory": "8Gi"}}
PARTS = {"replicas": 1, "gpu": {"count": 1}, "memory": "8Gi"}
SPLIT = {"serving": {"mode": "disaggregated"}, "scaling": {"prefill": PARTS, "decode": PARTS}}
IMAGE = {"image": "example.com/engine:1.0.0"}

CASES = [
    *(
        ("direct", {"engine": {"type": engine}, **GPU}, 1)
        for engine in ("vllm", "sglang", "trtllm", "llamacpp")
    ),
    ("kaito", {"engine": {"type": "vllm"}, **GPU, **IMAGE}, 1),
    ("kaito", {"engine": {"type": "llamacpp"}, **IMAGE}, 1),
    ("kuberay", {"engine": {"type": "vllm"}, **GPU}, 2),
    ("kuberay", {"engine": {"type": "vllm"}, **SPLIT}, 3),
    *(("dynamo", {"engine": {"type": engine}, **GPU}, 2) for engine in ("vllm", "sglang", "trtllm")),
    ("dynamo", {"engine": {"type": "vllm"}, **SPLIT}, 3),
]


def started(name: str, flags: dict[str, str]) -> Provider:
    build = named(name).from_flags
    assert build is not None
    return build(flags)


def pods(value: Any) -> Iterator[tuple[Object, Object]]:
    """Yield the spec of each pod, and its container with its variables."""
    if isinstance(value, list):
        for item in value:
            yield from pods(item)
    if not isinstance(value, dict):
        return
    if "extraPodSpec" in value:
        container = value["extraPodSpec"]["mainContainer"]
        yield value["extraPodSpec"], {**container, "env": value.get("envs", [])}
    elif "containers" in value:
        yield value, value["containers"][0]
    else:
        for part in value.values():
            yield from pods(part)


def rendered(provider: Provider, spec: dict[str, Any], schema: Schema) -> Rendered | None:
    model = deployment({"model": {"id": "org/model"}, **spec, "provider": {"name": provider.name}})
    return None if check(provider, model, schema).problems else results.render(provider, model, schema)


def variables(container: Object) -> dict[str, str]:
    names = [item["name"] for item in container.get("env", ())]
    assert len(set(names)) == len(names)
    return {item["name"]: item.get("value", "") for item in container.get("env", ())}


@pytest.mark.parametrize(("name", "spec", "count"), CASES)
def test_flags_reach_every_pod(name: str, spec: dict[str, Any], count: int) -> None:
    provider = started(name, FLAGS)
    objects = [made for schema in probed_schemas(provider) if (made := rendered(provider, spec, schema))]

    assert objects
    for made in objects:
        found = list(pods(made.main))
        assert len(found) == count
        assert not any("flags" in note for note in made.notes)
        for pod, container in found:
            assert VARIABLES.items() <= variables(container).items()
            assert pod["volumes"].count(VOLUME) == 1
            assert container["volumeMounts"].count(MOUNT) == 1


@pytest.mark.parametrize(("name", "spec", "count"), CASES)
def test_render_is_unchanged_without_flags(name: str, spec: dict[str, Any], count: int) -> None:
    provider = started(name, {})
    model = deployment({"model": {"id": "org/model"}, **spec, "provider": {"name": name}})

    for schema in probed_schemas(provider):
        if not check(provider, model, schema).problems:
            assert results.render(provider, model, schema) == provider.render(model, schema)


@pytest.mark.parametrize(("name", "spec", "count"), CASES)
def test_env_takes_precedence_over_flags(name: str, spec: dict[str, Any], count: int) -> None:
    provider = started(name, FLAGS)
    env = [{"name": "https_proxy", "value": "http://own:1"}, {"name": "SSL_CERT_FILE", "value": "/own.crt"}]
    schema = next(iter(probed_schemas(provider)))

    made = rendered(provider, {**spec, "env": env}, schema)

    assert made is not None
    for _, container in pods(made.main):
        stated = variables(container)
        assert (stated["https_proxy"], stated["SSL_CERT_FILE"]) == ("http://own:1", "/own.crt")
        assert "HTTPS_PROXY" not in stated
        assert stated["REQUESTS_CA_BUNDLE"] == CA_FILE


def test_kaito_preset_keeps_its_pods_and_says_so() -> None:
    provider = started("kaito", FLAGS)
    spec = {"model": {"id": "microsoft/phi-4"}, "engine": {"type": "vllm", "trustRemoteCode": True}, **GPU}
    model = deployment({**spec, "provider": {"name": "kaito"}})

    made = results.render(provider, model, next(iter(probed_schemas(provider))))

    assert made.main == results.render(started("kaito", {}), model, next(iter(probed_schemas(provider)))).main
    assert made.notes[-2:] == (
        "The pods of this model do not get HF_ENDPOINT, HTTPS_PROXY, NO_PROXY of the provider's flags",
        "The pods of this model do not get the CA bundle of the provider's flags",
    )


def test_volume_at_the_path_of_the_bundle_leaves_it_out() -> None:
    template = {
        "spec": {"volumes": [{"name": "own", "configMap": {"name": "own"}}]},
        "container": {"volumeMounts": [{"name": "own", "mountPath": "/etc/kubefoundry/ca"}]},
    }
    provider = started("direct", FLAGS)
    spec = {"engine": {"type": "vllm"}, **GPU, "podTemplate": template}

    made = rendered(provider, spec, next(iter(probed_schemas(provider))))

    assert made is not None
    [(pod, container)] = pods(made.main)
    assert VOLUME not in pod["volumes"]
    assert [mount["name"] for mount in container["volumeMounts"]].count("own") == 1


STARTS: list[dict[str, str]] = [
    {},
    FLAGS,
    {"--pod-https-proxy": "http://other.example.com:1"},
    {"--pod-ca-bundle": "other-ca/ca.pem", "--pod-hf-endpoint": "https://other.example.com"},
]
OWN_VARIABLES: list[list[Object]] = [
    [],
    [{"name": "A", "value": "1"}],
    [{"name": "HTTPS_PROXY", "value": "http://own:1"}],
    [{"name": "no_proxy", "valueFrom": {"secretKeyRef": {"name": "proxy", "key": "hosts"}}}],
    [{"name": "SSL_CERT_FILE", "value": "/own/ca.crt"}, {"name": "A", "value": "2"}],
    [{"name": "HF_ENDPOINT", "value": "https://own"}, {"name": "HTTP_PROXY", "value": "http://own:2"}],
]


def template(name: str, *paths: str) -> Object:
    """Return a podTemplate with a ConfigMap that is mounted at these paths."""
    mounts = [{"name": name, "mountPath": path, "subPath": path[1:]} for path in paths]
    volumes = [{"name": name, "configMap": {"name": "own"}}]
    return {"spec": {"volumes": volumes}, "container": {"volumeMounts": mounts}}


OWN_TEMPLATES: list[Object] = [
    {},
    template("own", "/a"),
    template("own", "/a", "/b"),
    template("own", "/a", "/b", "/c"),
    template("kubefoundry-ca-bundle", "/own"),
]


def edited(chance: random.Random, spec: dict[str, Any]) -> dict[str, Any]:
    """Return the spec with another env, podTemplate, image or scale."""
    fields: list[tuple[str, list[Any]]] = [
        ("env", OWN_VARIABLES),
        ("podTemplate", OWN_TEMPLATES),
        ("image", ["example.com/engine:1", "example.com/engine:2"]),
        ("scaling", [{"replicas": 1}, {"replicas": 2}]),
    ]
    field, values = chance.choice(fields)
    return {**spec, field: chance.choice([value for value in values if value != spec.get(field)])}


def assert_complete(main: Object) -> None:
    """Check that each mount has its volume, and that each path of the provider's bundle is mounted."""
    for pod, container in pods(main):
        volumes = [volume["name"] for volume in pod.get("volumes", ())]
        mounts = container.get("volumeMounts", ())
        assert len(set(volumes)) == len(volumes)
        assert {mount["name"] for mount in mounts} <= set(volumes)
        if CA_FILE in variables(container).values():
            assert MOUNT in mounts


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", ["direct", "kaito", "kuberay", "dynamo"])
def test_edits_keep_the_settings_of_the_first_write(name: str, seed: int) -> None:
    chance = random.Random(seed)
    fixed: dict[str, Any] = {"model": {"id": "org/model"}, "engine": {"type": "vllm"}, **GPU}
    spec = {
        **fixed,
        "image": "example.com/engine:1",
        "provider": {"name": name},
        "env": OWN_VARIABLES[seed % 6],
    }
    first = started(name, STARTS[seed % 4])
    schema = list(probed_schemas(first))[-1]
    live = unchanging = planned(of_plan(spec), subject=first, schema=schema)
    for _ in range(8):
        later = started(name, chance.choice(STARTS))
        assert planned(of_plan(spec), live, later, schema).changed == []

        spec = edited(chance, spec)
        live = planned(of_plan(spec), live, later, schema)
        unchanging = planned(of_plan(spec), unchanging, first, schema)

        assert_complete(live.main)
        assert same(manifest.body(live.main), manifest.body(unchanging.main))


def stored(name: str, path: str) -> dict[str, Any]:
    volume = {"name": name, "claimName": "own", "mountPath": path}
    return {"model": {"id": "org/model", "storage": {"volumes": [volume]}}}


@pytest.mark.parametrize(
    "own",
    [
        stored("kubefoundry-ca-bundle", "/own"),
        *(stored("own", f"/etc/kubefoundry{path}") for path in ("", "/ca", "/ca/x")),
        *(
            {"podTemplate": template("own", f"{path}kubefoundry")}
            for path in ("/etc/", "//etc/", "/etc/../etc/")
        ),
        {"podTemplate": template("own", "//etc/kubefoundry/ca/x")},
    ],
)
@pytest.mark.parametrize("name", ["direct", "kaito", "kuberay", "dynamo"])
def test_own_volume_there_leaves_the_bundle_out(name: str, own: dict[str, Any]) -> None:
    provider = started(name, FLAGS)

    made = rendered(
        provider, {"engine": {"type": "vllm"}, **GPU, **IMAGE, **own}, next(iter(probed_schemas(provider)))
    )

    assert made is not None
    assert_complete(made.main)
    for pod, container in pods(made.main):
        assert VOLUME not in pod.get("volumes", ())
        assert CA_FILE not in variables(container).values()


@pytest.mark.parametrize(("before", "after"), [({}, FLAGS), (FLAGS, {})], ids=["set", "removed"])
@pytest.mark.parametrize("name", ["direct", "kaito", "kuberay", "dynamo"])
def test_plan_shows_the_settings_that_are_kept(
    name: str, before: dict[str, str], after: dict[str, str]
) -> None:
    spec = {**of_plan().raw_spec, **GPU, **IMAGE, "provider": {"name": name}, "env": OWN_VARIABLES[2]}
    first, later = started(name, before), started(name, after)
    schema = list(probed_schemas(first))[-1]
    live = planned(of_plan(spec), subject=first, schema=schema)
    meta = {"name": "m", "namespace": "n", "uid": "uid", "generation": 1}
    edit = {**spec, "env": []}

    shown = upstream.planned(later, {"metadata": meta, "spec": edit}, schema, live.main, live.helpers)

    written = planned(of_plan(edit), live, first, schema).main
    assert same(manifest.body(shown.write_plan.main), manifest.body(written))
