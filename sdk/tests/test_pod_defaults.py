"""`--pod-…`: which texts the flags take, and that a changed flag writes nothing to a running model."""

from __future__ import annotations

import argparse
import json
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_sdk import Deployment, Rendered, Schema
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.pod_spec import CA_VOLUME
from kubefoundry_sdk._provider import pod_defaults
from kubefoundry_sdk._provider.contract import PodDefaults, Provider
from kubefoundry_sdk._provider.run import parser
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._provider.write.plan import Plan
from support.plans import deployment, planned, provider

PROXY = PodDefaults((("HTTPS_PROXY", "http://proxy:3128"),), "company-ca/ca.crt")
OTHER = PodDefaults((("HTTPS_PROXY", "http://other:3128"),))
NONE = PodDefaults()
NAMES = ["HTTPS_PROXY", "https_proxy", *pod_defaults.CA_VARIABLES]


def with_pod(defaults: PodDefaults) -> Provider:
    """Return a provider whose object has the variables and volumes of the spec, and none where there are none."""

    def render(model: Deployment, schema: Schema) -> Rendered:
        spec = model.spec
        parts = {"env": spec.env, "volumes": spec.pod_template.spec.volumes}
        content: dict[str, Any] = {name: list(value) for name, value in parts.items() if value}
        content["length"] = spec.engine.context_length or 0
        main = {"apiVersion": schema.api_version, "kind": "Engine", "metadata": {"name": model.name}}
        return Rendered({**main, "spec": content})

    return replace(provider(), render=render, recreate=lambda old, new: None, pod_defaults=defaults)


@pytest.mark.parametrize(
    ("before", "after"), [(NONE, PROXY), (PROXY, OTHER), (PROXY, NONE)], ids=["set", "changed", "removed"]
)
def test_changed_flag_writes_nothing(before: PodDefaults, after: PodDefaults) -> None:
    live = planned(deployment(), subject=with_pod(before))

    todo = planned(deployment(), live, with_pod(after))

    assert (todo.changed, todo.recreate, todo.drifted) == ([], None, ())


@pytest.mark.parametrize(
    "edit",
    [
        {"engine": {"type": "vllm", "contextLength": 8}},
        {"env": [{"name": "A", "value": "2"}]},
        {"env": []},
        {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]},
    ],
    ids=["other field", "changed variable", "removed variable", "added variable"],
)
@pytest.mark.parametrize("own", [[], [{"name": "A", "value": "1"}]], ids=["no env", "env"])
def test_edit_after_changed_flag_writes_only_the_edit(edit: dict[str, Any], own: list[Any]) -> None:
    live = planned(deployment({"env": own}), subject=with_pod(NONE))
    edited = deployment({"env": own, **edit})

    todo = planned(edited, live, with_pod(PROXY))

    assert todo.main["spec"] == planned(edited, live, with_pod(NONE)).main["spec"]


def test_refresh_takes_the_flag() -> None:
    live = planned(deployment(), subject=with_pod(NONE))

    todo = planned(deployment(annotations={names.REFRESH_ANNOTATION: "1"}), live, with_pod(PROXY))

    assert [variable["name"] for variable in todo.main["spec"]["env"]] == NAMES


def with_annotation(todo: Plan, text: str | None) -> Plan:
    """Return a plan whose object has that annotation in place of the settings with which it was written."""
    main = deepcopy(todo.main)
    main["metadata"]["annotations"].pop(names.POD_SETTINGS_ANNOTATION, None)
    if text is not None:
        main["metadata"]["annotations"][names.POD_SETTINGS_ANNOTATION] = text
    return replace(todo, main=main)


def test_object_without_settings_has_no_annotation() -> None:
    annotations = planned(deployment(), subject=with_pod(NONE)).main["metadata"]["annotations"]

    assert names.POD_SETTINGS_ANNOTATION not in annotations


@pytest.mark.parametrize("settings", [NONE, PROXY, OTHER, replace(PROXY, variables=())])
def test_annotation_has_all_settings(settings: PodDefaults) -> None:
    assert pod_defaults.unpacked(pod_defaults.packed(settings)) == settings


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{",
        "[]",
        "1",
        "[" * 100_000,
        '{"HTTPS_PROXY":1}',
        '{"HTTPS_PROXY":""}',
        '{"HTTPS_PROXY":["http://evil:1"]}',
        '{"HTTPS_PROXY":"http://user:password@evil:1"}',
        '{"LD_PRELOAD":"http://evil:1"}',
        '{"caBundle":"../x"}',
        "\ud800",
    ],
)
def test_invalid_annotation_counts_as_no_settings(text: str | None) -> None:
    live = with_annotation(planned(deployment(), subject=with_pod(PROXY)), text)

    assert (pod_defaults.unpacked(text), manifest.applied(live.main).settings) == (NONE, NONE)  # type: ignore[union-attr]
    assert planned(deployment(), live, with_pod(PROXY)).changed == []


@pytest.mark.parametrize(
    "edit",
    [
        {"env": [{"name": "A", "value": "2"}]},
        {"env": []},
        {"env": [], "podTemplate": {"spec": {"volumes": [{"name": "own", "emptyDir": {}}]}}},
    ],
)
@pytest.mark.parametrize("name", ["A", "HTTPS_PROXY", "SSL_CERT_FILE"])
@pytest.mark.parametrize("text", [None, "{", '{"LD_PRELOAD":"http://evil:1"}'])
def test_edit_is_complete_without_the_annotation(name: str, edit: dict[str, Any], text: str | None) -> None:
    settings = replace(PROXY, variables=(*PROXY.variables, ("NO_PROXY", ".svc")))
    live = planned(deployment({"env": [{"name": name, "value": "1"}]}), subject=with_pod(settings))

    todo = planned(deployment(edit), with_annotation(live, text), with_pod(settings))

    assert todo.main["spec"] == planned(deployment(edit), live, with_pod(settings)).main["spec"]


@pytest.mark.parametrize("current", [NONE, PROXY])
@pytest.mark.parametrize("written", [NONE, PROXY])
@pytest.mark.parametrize("before", [[], [{"name": "A", "value": "1"}]])
def test_forged_settings_bring_in_no_value(
    written: PodDefaults, current: PodDefaults, before: list[Any]
) -> None:
    forged = {"HF_ENDPOINT": "http://evil", "HTTPS_PROXY": "http://evil", "caBundle": "evil/ca.crt"}
    live = planned(deployment({"env": before}), subject=with_pod(written))
    edit = {"env": [{"name": "B", "value": "1"}], "podTemplate": {"spec": {"volumes": [{"name": "own"}]}}}

    todo = planned(deployment(edit), with_annotation(live, json.dumps(forged)), with_pod(current))

    assert "evil" not in json.dumps(manifest.content(todo.main))


@pytest.mark.parametrize("part", ["env", "volumes"])
@pytest.mark.parametrize("current", [NONE, PROXY, OTHER])
def test_removed_setting_is_restored_or_complete(part: str, current: PodDefaults) -> None:
    live = planned(deployment(), subject=with_pod(PROXY))
    main = deepcopy(live.main)
    main["spec"][part].pop(0)

    todo = planned(deployment(), replace(live, main=main), with_pod(current))

    assert todo.main["spec"] == live.main["spec"]


@pytest.mark.parametrize("read", [pod_defaults.url, pod_defaults.hosts, pod_defaults.ca_bundle])
@pytest.mark.parametrize(
    "login", ["user:s3cret", "s3cret", "u:s3cret/x", "u:s3cret@s3cret", "s3cret://s3cret"]
)
@pytest.mark.parametrize("scheme", ["http://", "a,http://", ""])
def test_refused_value_shows_no_password(read: Any, login: str, scheme: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as raised:
        read(f"{scheme}{login}@proxy:3128")

    assert "s3cret" not in str(raised.value)
    assert "proxy:3128" in str(raised.value)


def test_new_model_takes_the_flag() -> None:
    todo = planned(deployment(), subject=with_pod(PROXY))

    assert [variable["name"] for variable in todo.main["spec"]["env"]] == NAMES
    assert [volume["name"] for volume in todo.main["spec"]["volumes"]] == [CA_VOLUME]


def stated(*flags: str) -> PodDefaults:
    return pod_defaults.stated(parser("example").parse_args(flags))


def test_proxy_leaves_addresses_of_the_cluster_alone() -> None:
    assert dict(stated("--pod-http-proxy=http://p:1").variables)["NO_PROXY"] == pod_defaults.IN_CLUSTER
    own = stated("--pod-http-proxy=http://p:1", "--pod-no-proxy=.corp")
    assert dict(own.variables)["NO_PROXY"] == ".corp"
    assert stated() == PodDefaults()


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (pod_defaults.url, "proxy:3128"),
        (pod_defaults.url, "http://user:password@proxy:3128"),
        (pod_defaults.url, "http://proxy/$(HOME)"),
        (pod_defaults.hosts, "a, b"),
        (pod_defaults.hosts, "$(HOME)"),
        (pod_defaults.ca_bundle, "company-ca"),
        (pod_defaults.ca_bundle, "Company/ca.crt"),
        (pod_defaults.ca_bundle, "company-ca/a/b"),
        (pod_defaults.ca_bundle, "company-ca/"),
        (pod_defaults.ca_bundle, "company-ca/."),
        (pod_defaults.ca_bundle, "company-ca/.."),
        (pod_defaults.ca_bundle, "company-ca/..data"),
        (pod_defaults.ca_bundle, f"{'a' * 254}/ca.crt"),
        (pod_defaults.ca_bundle, f"company-ca/{'a' * 254}"),
    ],
)
def test_invalid_value_is_refused(read: Any, text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not"):
        read(text)


@pytest.mark.parametrize("text", ["", "a/b", "a.b-c/.ca", "a/a..b", "a/_", f"{'a' * 253}/{'a' * 253}"])
def test_possible_bundle_is_accepted(text: str) -> None:
    assert pod_defaults.ca_bundle(text) == text
