"""Tests refusals, changes of pod templates, mounted certificates, and reported providers."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_llamastack import checks, distribution, template_inputs, workload
from kubefoundry_llamastack.names import MANAGER, PROVIDER_SECONDS_ANNOTATION
from kubefoundry_llamastack.render import ca_bundle
from kubefoundry_llamastack.render.request import Distribution, PodInputs, Settings, UserConfig
from kubefoundry_llamastack.server_poll import provider
from kubefoundry_sdk._api import names
from support.hostile_json import places, spoilt

Make = Callable[..., Distribution]
Object = dict[str, Any]

FOUND = PodInputs(image="example.com/stack:1", tool="chat-provider-tool-0")
ECHO = {"providerId": "echo", "image": "example.com/echo:1"}
PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nBBBB\n-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    ("server", "phrases"),
    [
        (
            {"externalProviders": {"inference": [ECHO], "safety": [{**ECHO, "image": "b:1"}]}},
            (
                "'echo'",
                "externalProviders.inference",
                "externalProviders.safety",
                "example.com/echo:1",
                "b:1",
            ),
        ),
        (
            {"externalProviders": {"inference": [ECHO]}, "modelDeployments": [{"name": "echo"}]},
            ("'echo'", "example.com/echo:1", "modelDeployments"),
        ),
        ({"modelDeployments": [{"name": "a", "config": {"base_url": "x"}}]}, ("base_url", "'a'")),
        (
            {"externalProviders": {"inference": [{**ECHO, "config": {"a": "x" * 600_000}}]}},
            ("too long", "echo"),
        ),
        (
            {
                "externalProviders": {"inference": [ECHO]},
                "podOverrides": {"volumes": [{"name": "config", "emptyDir": {}}]},
            },
            ("podOverrides.volumes", "'config'"),
        ),
        (
            {"externalProviders": {"inference": [{**ECHO, "image": "e" * 90_000}]}},
            ("images", "too long", "use shorter"),
        ),
        (
            {
                "distribution": {"image": "e" * 90_000},
                "externalProviders": {"inference": [ECHO]},
            },
            ("images", "too long", "use shorter"),
        ),
        (
            {
                "externalProviders": {"inference": [ECHO]},
                "podOverrides": {"volumeMounts": [{"name": "v", "mountPath": "//opt/llama-stack//tool/"}]},
            },
            ("podOverrides.volumeMounts", "'//opt/llama-stack//tool/'"),
        ),
        (
            {"modelDeployments": [{"name": "a"}], "storage": {"mountPath": "/opt/llama-stack/config"}},
            ("storage.mountPath", "'/opt/llama-stack/config'"),
        ),
        (
            {"externalProviders": {"safety": [{**ECHO, "providerId": "remote"}]}},
            ("externalProviders.safety", "'remote'", "another providerId"),
        ),
        ({"modelDeployments": [{"name": "remote"}]}, ("modelDeployments ('remote')", "another providerId")),
    ],
    ids=[
        *("two APIs", "model and provider", "base_url", "too long", "volume name"),
        *("image name", "distribution's name", "mount path", "storage path"),
        *("reserved id", "reserved name of a model"),
    ],
)
def test_refusal_names_cause_and_remedy(make: Make, server: Object, phrases: tuple[str, ...]) -> None:
    text = checks.refusal(make(**server), Settings()) or ""

    assert all(phrase in text for phrase in phrases)


@pytest.mark.parametrize(
    "server",
    [
        {"externalProviders": {"files": [{**ECHO, "providerId": "remote"}]}},
        {"modelDeployments": [{"name": "remote", "providerId": "mine"}]},
    ],
    ids=["API without objects", "model with an id"],
)
def test_reserved_id_is_accepted_where_nothing_is_registered(make: Make, server: Object) -> None:
    assert checks.refusal(make(**server), Settings()) is None


def test_valid_cr_is_not_refused(make: Make) -> None:
    cr = make(externalProviders={"inference": [ECHO]}, modelDeployments=[{"name": "llama"}])

    assert checks.refusal(cr, Settings()) is None


def digest(cr: Distribution, pod_inputs: PodInputs = FOUND, override: str = "", **server: Any) -> str:
    raw = {"server": {"distribution": {"image": "example.com/stack:1"}, **server}}
    return template_inputs.digest_inputs(cr, pod_inputs, override, raw)


def test_inputs_digest_changes_with_each_input(make: Make) -> None:
    cr = make()
    same = digest(cr)

    assert digest(make(), replace(FOUND, image="newer:2", tool="another")) == same
    assert digest(make(), storage={"size": "1Gi"}) == digest(make(), storage={"size": "2Gi"})
    assert digest(make({"replicas": 2})) == same
    assert digest(make(), replace(FOUND, restricted=True)) == same
    changes = [
        digest(cr, replace(FOUND, user_config=UserConfig("config.yaml", "d"))),
        digest(cr, replace(FOUND, ca_digest="d")),
        digest(cr, replace(FOUND, endpoints={"a": "http://a"})),
        digest(cr, FOUND, "override:1"),
        digest(replace(cr, annotations={names.REFRESH_ANNOTATION: "1"})),
        digest(cr, workers=2),
    ]
    assert len({same, *changes}) == 7


def test_template_stays_while_inputs_and_tool_do(make: Make) -> None:
    cr = make(externalProviders={"inference": [ECHO]})
    first = workload.decide(cr, FOUND, Settings(), "inputs", None, None)
    live = applied(first.body)
    newer = replace(FOUND, image="newer:2", tool="chat-provider-tool-1")

    def decided(made_from: str, *tools: str) -> str:
        before = workload.PreviousState(tools=tools)
        decision = workload.decide(cr, newer, Settings(), made_from, live, first.record, before)
        return workload.tool_of(decision.body["spec"]["template"])

    assert decided("inputs", "chat-provider-tool-0") == "chat-provider-tool-0"
    assert decided("others", "chat-provider-tool-0") == "chat-provider-tool-1"
    assert decided("inputs") == "chat-provider-tool-1"


@pytest.mark.parametrize(
    ("several", "restricted"), [(False, False), (True, False), (False, True), (True, True)]
)
@pytest.mark.parametrize("replicas", [1, 2, 5])
def test_scaling_keeps_template_of_any_operator(
    make: Make, several: bool, restricted: bool, replicas: int
) -> None:
    """A record of an operator up to 0.2.0 depends on the number of pods and on the namespace's label."""
    cr = make({"replicas": 3 if several else 1}, externalProviders={"inference": [ECHO]})
    raw: Object = {"server": {}}
    inputs = (cr, FOUND, "", raw)
    old = template_inputs.digest_inputs(*inputs, several=several, restricted=restricted)
    first = workload.decide(cr, replace(FOUND, restricted=restricted), Settings(), old, None, None)
    scaled = replace(cr, spec=cr.spec.model_copy(update={"replicas": replicas}))
    before = workload.PreviousState(tools=[FOUND.tool], digests=template_inputs.earlier_digests(*inputs))

    decision = workload.decide(
        scaled,
        FOUND,
        Settings(),
        template_inputs.digest_inputs(*inputs),
        applied(first.body),
        first.record,
        before,
    )

    assert decision.body["spec"]["template"] == first.body["spec"]["template"]
    assert decision.body["spec"]["replicas"] == replicas
    assert decision.record == first.record


@pytest.mark.parametrize(
    ("live_replicas", "is_adopted", "applied_replicas"), [(0, False, 1), (3, False, 3), (0, True, 0)]
)
def test_autoscaled_deployment_does_not_keep_our_zero(
    make: Make, live_replicas: int, is_adopted: bool, applied_replicas: int
) -> None:
    """An autoscaler does nothing at 0. Only an adoption changes no number of pods."""
    first = workload.decide(make({"replicas": live_replicas}), FOUND, Settings(), "inputs", None, None)
    record = replace(first.record, adopted=is_adopted)
    cr = make({"replicas": live_replicas}, autoscaling={"maxReplicas": 3})
    live = applied(first.body)
    live["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:replicas"] = {}

    decision = workload.decide(cr, FOUND, Settings(), "inputs", live, record)

    assert decision.body["spec"]["replicas"] == applied_replicas


RESTRICTED = replace(FOUND, restricted=True)


@pytest.mark.parametrize(
    "providers", [{}, {"externalProviders": {"inference": [ECHO]}}], ids=["bare", "extended"]
)
@pytest.mark.parametrize(
    ("made", "now", "is_refused", "after"),
    [
        (FOUND, FOUND, False, False),
        (FOUND, RESTRICTED, False, False),
        (FOUND, RESTRICTED, True, True),
        (RESTRICTED, FOUND, False, True),
        (RESTRICTED, RESTRICTED, True, True),
        (FOUND, FOUND, True, True),
    ],
    ids=["same", "tightened", "refused", "loosened", "another cause", "refused without label"],
)
@pytest.mark.parametrize("has_record", [True, False], ids=["recorded", "unrecorded"])
def test_namespace_label_replaces_pods_only_when_refused(
    make: Make,
    providers: Object,
    made: PodInputs,
    now: PodInputs,
    is_refused: bool,
    after: bool,
    has_record: bool,
) -> None:
    cr = make(**providers)
    first = workload.decide(cr, made, Settings(), "inputs", None, None)
    before = workload.PreviousState(tools=[FOUND.tool], is_refused=is_refused)
    record = first.record if has_record else None

    decision = workload.decide(cr, now, Settings(), "inputs", applied(first.body), record, before)

    pod = decision.body["spec"]["template"]["spec"]
    is_unchanged = pod == first.body["spec"]["template"]["spec"]
    assert pod["securityContext"].get("runAsNonRoot", False) is after
    assert ("securityContext" in pod["containers"][0]) is after
    assert is_unchanged is (after is made.restricted)


def applied(body: Object) -> Object:
    """Return the Deployment as it is after its apply."""
    pod: Object = {f"f:{key}": {} for key in body["spec"]["template"]["spec"]}
    fields: Object = {"f:spec": {"f:template": {"f:metadata": {}, "f:spec": pod}}}
    entry = {"manager": MANAGER, "operation": "Apply", "fieldsV1": fields}
    return {**body, "metadata": {**body["metadata"], "managedFields": [entry]}}


def image(decided: workload.Workload) -> str:
    return str(decided.body["spec"]["template"]["spec"]["containers"][0]["image"])


def test_record_is_ignored_when_it_differs_from_live(make: Make) -> None:
    """Permission to write ConfigMaps must not decide which pods run."""
    cr = make()
    first = workload.decide(cr, FOUND, Settings(), "inputs", None, None)
    forged = copy.deepcopy(first.record)
    forged.template["spec"]["containers"][0]["image"] = "example.com/forged:1"
    smaller = copy.deepcopy(first.record)
    del smaller.template["spec"]["securityContext"]

    for record in (forged, smaller):
        for live in (applied(first.body), None):
            decided = workload.decide(cr, FOUND, Settings(), "inputs", live, record)

            assert image(decided) == "example.com/stack:1"
            assert decided.record == first.record


@pytest.mark.slow
@pytest.mark.parametrize("adopted", [True, False])
def test_corrupt_record_is_ignored(make: Make, adopted: bool) -> None:
    """Any part of the record may be missing or invalid, whoever wrote it."""
    cr = make(externalProviders={"inference": [ECHO]})
    first = workload.decide(cr, FOUND, Settings(), "inputs", None, None)
    live = applied(first.body)
    odd: tuple[Any, ...] = (
        *(None, 0, True, "", "x", [], {}, [1], [[]], [{}], [None], {"name": ["x"]}, [{"name": ["x"]}]),
        *([{"name": {}}], [{"mountPath": []}], [{"name": "a"}, {"name": "a"}], 10**30),
    )
    tried = 0
    for path in places(first.record.template):
        for value in odd:
            template = json.loads(spoilt(first.record.template, path, json.dumps(value)))
            data = {"template": json.dumps(template), "inputs": "inputs", "adopted": str(adopted).lower()}
            record = workload.read_record({"data": data})

            decided = workload.decide(cr, FOUND, Settings(), "inputs", live, record)

            assert workload.tool_of(decided.body["spec"]["template"]) in ("", FOUND.tool)
            assert not decided.write or image(decided) == FOUND.image
            tried += 1
    assert tried > 1000


def test_adoption_adds_no_probes_before_next_change(make: Make) -> None:
    """Another pod template would be another generation, and replace the pods."""
    cr = make()
    old_body = copy.deepcopy(workload.decide(cr, FOUND, Settings(), "inputs", None, None).body)
    [container] = old_body["spec"]["template"]["spec"]["containers"]
    for probe in workload.PROBES:
        del container[probe]
    live = applied(old_body)

    decision = workload.decide(cr, FOUND, Settings(), "inputs", live, None)
    changed = workload.decide(cr, FOUND, Settings(), "others", live, decision.record)

    assert decision.body["spec"]["template"] == old_body["spec"]["template"]
    [after] = changed.body["spec"]["template"]["spec"]["containers"]
    assert set(after) - set(container) == set(workload.PROBES)


def test_record_round_trips(make: Make) -> None:
    record = workload.Record({"spec": {"containers": [], "a": 2**53 + 1}}, "inputs", adopted=True)

    assert workload.read_record(workload.record_config_map(make(), record)) == record
    assert workload.read_record({"data": {"template": "no JSON"}}) is None


def test_ca_bundle_has_only_certificates_in_key_order() -> None:
    data = {"a": PEM + KEY, "b": f"# a comment\n{PEM}"}

    assert ca_bundle.bundle(data, ["b", "a"], "cas", is_explicit=True) == f"{PEM}\n{PEM}"
    assert ca_bundle.bundle({"ca-bundle.crt": PEM}, ca_bundle.TRUSTED_KEYS, "odh", is_explicit=False) == PEM
    for wrong, phrase in (({"a": KEY}, "no PEM certificate"), ({}, "no key 'a'")):
        with pytest.raises(ca_bundle.Unusable, match=phrase):
            ca_bundle.bundle(wrong, ["a"], "cas", is_explicit=True)


def test_operator_config_reads_images_and_flags() -> None:
    data = {
        "image-overrides": "starter: example.com/s:1\nbad: '!! no'\n",
        "featureFlags": "enableNetworkPolicy: {enabled: true}",
    }

    read = distribution.read({"data": data})

    assert (dict(read.images), read.network_policies, len(read.problems)) == (
        {"starter": "example.com/s:1"},
        True,
        1,
    )
    assert distribution.read(None) == distribution.OperatorConfig()
    mirrored = distribution.read({"data": {"image-overrides": "starter: own:1"}}, "r.example/kf").images
    assert mirrored["starter"] == "own:1"
    assert mirrored["remote-vllm"] == "r.example/kf/llamastack/distribution-remote-vllm:latest"
    assert "not YAML" in distribution.read({"data": {"image-overrides": "a: [b"}}).problems[0]


@pytest.mark.parametrize(
    ("name", "fits"),
    [("chat", True), ("a" * 55, True), ("a" * 56, False), ("a.b", False), ("1chat", False), ("chat-2", True)],
)
def test_name_is_refused_when_service_name_is_invalid(make: Make, name: str, fits: bool) -> None:
    cr = replace(make(containerSpec={"port": 8321}), name=name)
    unserved = replace(make(), name=name)

    assert (checks.refusal(cr, Settings()) is None) is fits
    assert checks.refusal(unserved, Settings()) is None


@pytest.mark.parametrize(
    ("deadline", "fits"),
    [
        *((text, True) for text in ("1", "60", "3600")),
        *((text, False) for text in ("0", "3601", "-1", "x", "", "6\u0660", "1e2", "9" * 400)),
    ],
)
def test_provider_deadline_is_checked(make: Make, deadline: str, fits: bool) -> None:
    cr = replace(make(), annotations={PROVIDER_SECONDS_ANNOTATION: deadline})

    refused = checks.refusal(cr, Settings())

    assert (refused is None) is fits
    assert refused is None or (PROVIDER_SECONDS_ANNOTATION in refused and "3600" in refused)


@pytest.mark.accept("HP-8")
@pytest.mark.parametrize(
    ("text", "policies", "problems"),
    [
        ("", False, 0),
        ("{}", False, 0),
        ("enableNetworkPolicy: {}", False, 0),
        ("enableNetworkPolicy: {enabled: false}", False, 0),
        ("enableNetworkPolicy: {enabled: true}", True, 0),
        ("enableNetworkPolicy: {enabled: 'true'}", None, 1),
        ("enableNetworkPolicy: {enabled: }", None, 1),
        ("enableNetworkPolicy: true", None, 1),
        ("enableNetworkPolicy: [enabled]", None, 1),
        ("enableNetworkPolicy: {enabled: true", None, 1),
        ("- enableNetworkPolicy", None, 1),
        ("enabled", None, 1),
        ("a: 2024-99-99", False, 0),
        ("[" * 5000, None, 1),
    ],
)
def test_unreadable_flags_keep_network_policies(text: str, policies: bool | None, problems: int) -> None:
    read = distribution.read({"data": {"featureFlags": text}})

    assert (read.network_policies, len(read.problems)) == (policies, problems)


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"api": "inference", "provider_id": "a", "provider_type": "remote::b", "config": None}, {}),
        ({"api": "inference", "provider_id": "a", "provider_type": "t", "config": {"k": 1}}, {"k": 1}),
    ],
)
def test_provider_row_matches_server_listing(item: Object, expected: Object) -> None:
    row = provider(item)

    assert row is not None
    assert row["config"] == expected
    assert row["health"] == {"status": "", "message": ""}
    assert provider({"api": "inference"}) is None
