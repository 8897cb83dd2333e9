"""Tests how services of providers become containers of the server's pod."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_llamastack import kubernetes_release, workload
from kubefoundry_llamastack.main import parse_choice
from kubefoundry_llamastack.render import children, server, tool
from kubefoundry_llamastack.render.deployment import deployment
from kubefoundry_llamastack.render.request import Distribution, PodInputs, Settings
from kubefoundry_sdk._api import server_release
from llamastack_providers import layout, request
from llamastack_providers.service import Health

Make = Callable[..., Distribution]
Object = dict[str, Any]

ON = Settings(provider_services=True)
FOUND = PodInputs(image="example.com/stack:1", tool="chat-provider-tool-0", native_sidecars=True)
ORDINARY = replace(FOUND, native_sidecars=False)
INLINE = {"providerId": "echo", "image": "example.com/echo:1"}
GUARD = {"providerId": "guard", "image": "example.com/guard:1"}
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"
SECRET = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}


def with_service(**service: Any) -> Object:
    return {**GUARD, "service": service}


def pod_of(cr: Distribution, pod_inputs: PodInputs = FOUND) -> Object:
    pod: Object = deployment(cr, pod_inputs, ON)["spec"]["template"]["spec"]
    return pod


def names(containers: list[Object]) -> list[str]:
    return [item["name"] for item in containers]


def mounts(container: Object) -> dict[str, Object]:
    return {item["mountPath"]: item for item in container["volumeMounts"]}


def variables(container: Object) -> dict[str, str]:
    return {item["name"]: item.get("value", "") for item in container["env"]}


def tool_input(container: Object) -> Object:
    words = [*container.get("command", ()), *container.get("args", ())]
    return request.decode(words[words.index("--input") + 1 :])


@pytest.mark.accept("L2-03")
def test_sidecar_follows_merge_with_defaults(make: Make) -> None:
    cr = make(externalProviders={"inference": [INLINE], "safety": [with_service()]})

    pod = pod_of(cr)

    *_, sidecar = pod["initContainers"]
    assert names(pod["initContainers"]) == [
        *("external-provider-echo", "external-provider-guard", "extract-distribution-config"),
        *("merge-config", "provider-guard"),
    ]
    assert names(pod["containers"]) == ["llama-stack"]
    check = {"httpGet": {"path": "/healthz", "port": 18500}}
    assert sidecar == {
        "name": "provider-guard",
        "image": "example.com/guard:1",
        "imagePullPolicy": "IfNotPresent",
        "restartPolicy": "Always",
        "env": [
            {"name": "LLS_PROVIDER_ID", "value": "guard"},
            {"name": "LLS_PROVIDER_LISTEN", "value": "unix:/run/lls-provider/service.sock"},
            {"name": "LLS_PROVIDER_TOKEN_FILE", "value": "/run/lls-provider-tokens/guard/token"},
            {"name": "LLS_PROVIDER_HEALTH", "value": "0.0.0.0:18500"},
        ],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [
            {"name": "svc-guard", "mountPath": "/run/lls-provider"},
            {"name": "tok-guard", "mountPath": "/run/lls-provider-tokens/guard", "readOnly": True},
            {"name": "svc-guard", "mountPath": TOKEN, "subPath": "no-token", "readOnly": True},
        ],
        "startupProbe": {**check, "periodSeconds": 2, "timeoutSeconds": 2, "failureThreshold": 31},
        "readinessProbe": {**check, "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 3},
        "livenessProbe": {**check, "periodSeconds": 30, "timeoutSeconds": 10, "failureThreshold": 5},
    }


@pytest.mark.accept("L2-03")
def test_service_fields_reach_its_container(make: Make) -> None:
    service = with_service(
        image="example.com/service:2",
        imagePullPolicy="Always",
        command=["/serve"],
        args=["-x"],
        transport="TCP",
        port=9000,
        health={"exec": ["/check"], "startSeconds": 5},
        env=[SECRET],
        resources={"limits": {"memory": "64Mi"}},
        scratch="1Gi",
    )

    pod = pod_of(make(externalProviders={"safety": [service]}))

    *_, sidecar = pod["initContainers"]
    assert (sidecar["image"], sidecar["imagePullPolicy"]) == ("example.com/service:2", "Always")
    assert (sidecar["command"], sidecar["args"]) == (["/serve"], ["-x"])
    assert variables(sidecar)["LLS_PROVIDER_LISTEN"] == "127.0.0.1:9000"
    assert "LLS_PROVIDER_HEALTH" not in variables(sidecar)
    assert sidecar["env"][-1] == SECRET
    assert sidecar["resources"]["requests"] == {"cpu": "100m", "memory": "64Mi"}
    assert sidecar["securityContext"]["readOnlyRootFilesystem"] is True
    assert mounts(sidecar)["/tmp"] == {"name": "tmp-guard", "mountPath": "/tmp"}
    assert {"name": "tmp-guard", "emptyDir": {"sizeLimit": "1Gi"}} in pod["volumes"]
    assert sidecar["startupProbe"]["exec"] == {"command": ["/check"]}
    assert sidecar["startupProbe"]["failureThreshold"] == 4
    assert variables(pod["containers"][0])["KUBEFOUNDRY_PROVIDER_GUARD_URL"] == "http://127.0.0.1:9000"


@pytest.mark.accept("L2-03")
def test_socket_is_shared_by_service_and_server_alone(make: Make) -> None:
    tcp = {**INLINE, "service": {"transport": "TCP"}}

    pod = pod_of(make(externalProviders={"inference": [tcp], "safety": [with_service()]}))

    echo, guard = ("/run/lls-provider/echo", "/run/lls-provider/guard")
    by_name = {item["name"]: mounts(item) for item in (*pod["initContainers"], *pod["containers"])}
    assert {"name": "svc-guard", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}} in pod["volumes"]
    assert by_name["llama-stack"][guard] == {"name": "svc-guard", "mountPath": guard, "readOnly": True}
    assert by_name["provider-echo"][layout.SERVICES]["name"] == "svc-echo"
    assert by_name["provider-guard"][layout.SERVICES]["name"] == "svc-guard"
    assert {name for name in by_name if {echo, guard} & {*by_name[name]}} == {"llama-stack"}


@pytest.mark.accept("L2-20", "L2-21")
def test_token_is_written_by_merge_alone(make: Make) -> None:
    tcp = {**INLINE, "service": {"transport": "TCP"}}

    pod = pod_of(make(externalProviders={"inference": [tcp], "safety": [with_service()]}))

    containers = [*pod["initContainers"], *pod["containers"]]
    for provider_id in ("echo", "guard"):
        folder, volume = f"/run/lls-provider-tokens/{provider_id}", f"tok-{provider_id}"
        mounted = {
            item["name"]: mount
            for item in containers
            for mount in item["volumeMounts"]
            if mount["name"] == volume
        }
        read_only = {"name": volume, "mountPath": folder, "readOnly": True}
        assert {"name": volume, "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}} in pod["volumes"]
        assert mounted == {
            "merge-config": {"name": volume, "mountPath": folder},
            f"provider-{provider_id}": read_only,
            "llama-stack": read_only,
        }


@pytest.mark.accept("L2-03")
def test_sidecar_has_nothing_of_the_server(make: Make) -> None:
    cr = make(
        externalProviders={"safety": [with_service()]},
        containerSpec={"env": [SECRET]},
        podOverrides={
            "volumes": [{"name": "mine", "emptyDir": {}}],
            "volumeMounts": [{"name": "mine", "mountPath": "/mine"}],
        },
    )

    pod = pod_of(cr)

    *_, sidecar = pod["initContainers"]
    assert pod["automountServiceAccountToken"] is False
    assert {*variables(sidecar)} & {*variables(pod["containers"][0])} == set()
    assert {item["name"] for item in sidecar["volumeMounts"]} == {"svc-guard", "tok-guard"}
    assert "shareProcessNamespace" not in pod


@pytest.mark.accept("L2-21")
@pytest.mark.parametrize(("item", "has_last_words"), [(GUARD, True), (with_service(), False)])
def test_log_of_server_with_token_stays_out_of_pod_status(
    make: Make, item: Object, has_last_words: bool
) -> None:
    [container, *_] = pod_of(make(externalProviders={"safety": [item]}))["containers"]

    assert ("terminationMessagePolicy" in container) is has_last_words


@pytest.mark.accept("L2-03")
def test_positions_give_each_service_its_own_ports(make: Make) -> None:
    providers = [INLINE, *({**GUARD, "providerId": f"p{n}", "service": {"transport": "TCP"}} for n in (0, 1))]

    pod = pod_of(make(externalProviders={"safety": providers}))

    assert [
        (variables(item)["LLS_PROVIDER_LISTEN"], variables(item)["LLS_PROVIDER_HEALTH"])
        for item in pod["initContainers"][-2:]
    ] == [("127.0.0.1:18400", "0.0.0.0:18500"), ("127.0.0.1:18401", "0.0.0.0:18501")]


@pytest.mark.accept("L2-03")
def test_tool_gets_description_of_service(make: Make) -> None:
    service = with_service(health={"startSeconds": 7, "path": "/ok"}, required=False)
    cr = make(externalProviders={"inference": [INLINE], "safety": [service]})
    pod = pod_of(cr)
    by_name = {item["name"]: item for item in pod["initContainers"]}

    install = request.provider(tool_input(by_name["external-provider-guard"]))
    merge = request.merge(tool_input(by_name["merge-config"]))
    preflight = request.preflight(request.decode(tool.preflight(cr, FOUND.image)))

    assert install.service is not None
    assert merge.services == preflight.services == {"guard": install.service}
    described = install.service
    assert (described.mode, described.transport) == ("Sidecar", "UnixSocket")
    assert described.address == "http+unix:///run/lls-provider/guard/service.sock"
    assert described.address == variables(pod["containers"][0])["KUBEFOUNDRY_PROVIDER_GUARD_URL"]
    assert described.token_file == "/run/lls-provider-tokens/guard/token"
    assert (described.required, described.start_seconds) == (False, 7)
    assert described.health == Health(18500, "/ok")


@pytest.mark.accept("L2-04")
@pytest.mark.parametrize(
    ("pod_inputs", "required", "is_native"),
    [(FOUND, True, True), (FOUND, False, False), (ORDINARY, True, False), (ORDINARY, False, False)],
)
def test_only_required_services_are_native_sidecars(
    make: Make, pod_inputs: PodInputs, required: bool, is_native: bool
) -> None:
    pod = pod_of(make(externalProviders={"safety": [with_service(required=required)]}), pod_inputs)

    assert names(pod["containers"]) == ["llama-stack", *([] if is_native else ["provider-guard"])]
    assert ("provider-guard" in names(pod["initContainers"])) is is_native
    [sidecar] = [
        item for item in (*pod["initContainers"], *pod["containers"]) if item["name"] == "provider-guard"
    ]
    assert sidecar.get("restartPolicy") == ("Always" if is_native else None)
    probes = {key for key in sidecar if key.endswith("Probe")}
    assert probes == ({"startupProbe", "readinessProbe", "livenessProbe"} if required else {"livenessProbe"})


@pytest.mark.accept("L2-04")
@pytest.mark.parametrize(
    ("choice", "version", "is_native"),
    [
        ("auto", ("1", "26"), False),
        ("auto", ("1", "31"), False),
        ("auto", ("1", "32"), True),
        ("auto", ("1", "33+"), True),
        ("auto", ("2", "0"), True),
        ("true", ("1", "29"), True),
        ("false", ("1", "36"), False),
    ],
)
def test_native_sidecars_follow_flag_and_release(
    choice: str, version: tuple[str, str], is_native: bool
) -> None:
    settings = Settings(native_sidecars=choice)

    release = server_release.parse({"major": version[0], "minor": version[1]})

    assert kubernetes_release.has_native_sidecars(settings, release) is is_native
    assert kubernetes_release.refusal(settings, release) is None


@pytest.mark.parametrize("text", ["", "yes", "True", "1", "auto "])
def test_other_values_of_native_sidecars_are_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="auto, true or false"):
        parse_choice(text)


@pytest.mark.accept("L2-04")
def test_forced_native_sidecars_are_refused_before_1_29() -> None:
    text = kubernetes_release.refusal(Settings(native_sidecars="true"), (1, 28)) or ""

    assert all(word in text for word in ("--native-sidecars", "1.28", "auto"))


@pytest.mark.accept("L2-04", "L2-37")
@pytest.mark.parametrize("has_record", [True, False], ids=["recorded", "unrecorded"])
@pytest.mark.parametrize("started", [FOUND, ORDINARY], ids=["native", "ordinary"])
@pytest.mark.parametrize("required", [True, False])
def test_other_choice_of_native_sidecars_keeps_template(
    make: Make, started: PodInputs, has_record: bool, required: bool
) -> None:
    """An upgrade of the cluster, or another value of the flag, must replace no pods."""
    cr = make(externalProviders={"safety": [with_service(required=required)]})
    first = workload.decide(cr, started, ON, "inputs", None, None)
    flipped = replace(started, native_sidecars=not started.native_sidecars)
    before = workload.PreviousState(tools=[FOUND.tool])
    record = first.record if has_record else None

    after = workload.decide(cr, flipped, ON, "inputs", applied(first.body), record, before)

    assert after.body["spec"]["template"] == first.body["spec"]["template"]


@pytest.mark.accept("L2-04")
def test_next_change_takes_other_choice_of_native_sidecars(make: Make) -> None:
    cr = make(externalProviders={"safety": [with_service()]})
    first = workload.decide(cr, ORDINARY, ON, "inputs", None, None)
    before = workload.PreviousState(tools=[FOUND.tool])

    after = workload.decide(cr, FOUND, ON, "others", applied(first.body), first.record, before)

    assert "provider-guard" in names(after.body["spec"]["template"]["spec"]["initContainers"])


@pytest.mark.parametrize(("required", "added"), [(True, 120), (False, 0)])
def test_startup_probe_of_server_waits_for_required_services(make: Make, required: bool, added: int) -> None:
    service = with_service(required=required, health={"startSeconds": 120})

    probes = [server.probes(make(externalProviders={"safety": [item]})) for item in (GUARD, service)]

    plain, waiting = (item["startupProbe"]["failureThreshold"] * 10 for item in probes)
    assert waiting - plain == added


@pytest.mark.parametrize("seconds", [1, 2, 3, 59, 60, 3600])
def test_no_startup_probe_ends_service_before_its_time(make: Make, seconds: int) -> None:
    """The first check comes at once."""
    pod = pod_of(make(externalProviders={"safety": [with_service(health={"startSeconds": seconds})]}))

    probe = pod["initContainers"][-1]["startupProbe"]
    last = (probe["failureThreshold"] - 1) * probe["periodSeconds"]
    assert seconds <= last <= seconds + 1


@pytest.mark.accept("L2-32")
def test_autoscaler_measures_only_server_beside_services(make: Make) -> None:
    cr = make(
        externalProviders={"safety": [with_service()]},
        autoscaling={"maxReplicas": 3, "targetCPUUtilizationPercentage": 60},
    )

    plain, by_container = (children.autoscaler(cr, by_container=choice) for choice in (False, True))

    target = {"type": "Utilization", "averageUtilization": 60}
    assert plain is not None
    assert by_container is not None
    assert plain["spec"]["metrics"] == [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    assert by_container["spec"]["metrics"] == [
        {
            "type": "ContainerResource",
            "containerResource": {"name": "cpu", "container": "llama-stack", "target": target},
        }
    ]


@pytest.mark.parametrize("endpoints", [{"llama": "http://model"}, {}], ids=["endpoint", "no endpoint"])
@pytest.mark.parametrize("server_name", ["llama-stack", "renamed"])
def test_variable_of_service_is_no_endpoint(make: Make, endpoints: dict[str, str], server_name: str) -> None:
    variable = {"name": "KUBEFOUNDRY_MD_LLAMA_URL", "value": "http://service"}
    server_parts: Object = {
        "externalProviders": {"safety": [with_service(required=False, env=[variable])]},
        "modelDeployments": [{"name": "m", "providerId": "llama"}],
    }
    live = deployment(make(**server_parts), replace(FOUND, endpoints=endpoints), ON)

    latched = workload.latched_urls(make(**server_parts, containerSpec={"name": server_name}), live)

    assert latched == endpoints


def applied(body: Object) -> Object:
    """Return the Deployment as it is after its apply."""
    pod: Object = {f"f:{key}": {} for key in body["spec"]["template"]["spec"]}
    fields: Object = {"f:spec": {"f:template": {"f:metadata": {}, "f:spec": pod}}}
    entry = {"manager": "kubefoundry-llamastack", "operation": "Apply", "fieldsV1": fields}
    return {**body, "metadata": {**body["metadata"], "managedFields": [entry]}}
