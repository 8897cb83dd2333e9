"""The provider's functions against the reduced CRD, without a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kubefoundry_conformance.main import main
from kubefoundry_lws.provider import with_images
from kubefoundry_sdk import Rendered, Schema, manifest
from kubefoundry_sdk.spec import incompatibilities
from kubefoundry_sdk.testing import deployment

HERE = Path(__file__).resolve().parents[1]
LWS = with_images()
SCHEMA = Schema("leaderworkerset.x-k8s.io/v1")
VLLM_PLACE = [
    *("--nnodes", "2", "--node-rank", "$(LWS_WORKER_INDEX)"),
    *("--master-addr", "$(LWS_LEADER_ADDRESS)", "--master-port", "20000"),
]


def spec_of(engine: str = "vllm", gpus: int = 16, nodes: int = 2, **args: str) -> dict[str, Any]:
    """Return a spec of a model on several nodes."""
    return {
        "model": {"id": "org/model"},
        "engine": {"type": engine, "args": {name.replace("_", "-"): value for name, value in args.items()}},
        "resources": {"gpu": {"count": gpus}, "memory": "1Ti", "cpu": 7},
        "provider": {"name": "lws", "overrides": {"nodes": nodes}},
    }


def rendered(spec: dict[str, Any], name: str = "m") -> Rendered:
    return LWS.render(deployment(spec, name=name), SCHEMA)


def containers(spec: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the containers of the leader and of the other nodes."""
    template = rendered(spec).main["spec"]["leaderWorkerTemplate"]
    [leader] = template["leaderTemplate"]["spec"]["containers"]
    [worker] = template["workerTemplate"]["spec"]["containers"]
    return leader, worker


def test_functions_pass_the_conformance_kit(capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--crd", str(HERE / "tests/leaderworkersets.crd.yaml"), "--cases", str(HERE / "cases.yaml")]
    functions = ["--functions", "kubefoundry_lws.provider:with_images", "--examples", "25"]

    assert main(["provider", *functions, *files]) == 0, capsys.readouterr().out


def test_vllm_followers_are_headless() -> None:
    leader, worker = containers(spec_of())

    assert leader["command"] == worker["command"] == ["vllm", "serve"]
    assert leader["args"] == [
        *("org/model", "--served-model-name", "model", "--host", "0.0.0.0", "--port", "8000"),
        *("--tensor-parallel-size", "8", "--pipeline-parallel-size", "2"),
        *VLLM_PLACE,
    ]
    assert worker["args"] == [*leader["args"], "--headless"]


def test_only_the_leader_serves() -> None:
    leader, worker = containers(spec_of())

    assert ("ports" in leader, "readinessProbe" in leader) == (True, True)
    assert ("ports" in worker, "readinessProbe" in worker) == (False, False)
    [service] = rendered(spec_of()).helpers
    assert service["spec"]["selector"] == {
        "leaderworkerset.sigs.k8s.io/name": "m",
        "leaderworkerset.sigs.k8s.io/worker-index": "0",
    }


def test_sglang_nodes_meet_at_the_leader() -> None:
    leader, worker = containers(spec_of("sglang", tp_size="16", disable_radix_cache="false"))

    assert leader["command"] == ["python3", "-m", "sglang.launch_server"]
    assert leader["args"] == worker["args"]
    assert leader["args"][:2] == ["--model-path", "org/model"]
    assert leader["args"][-8:] == [
        *("--tensor-parallel-size", "16", "--nnodes", "2", "--node-rank", "$(LWS_WORKER_INDEX)"),
        *("--dist-init-addr", "$(LWS_LEADER_ADDRESS):20000"),
    ]


def test_one_node_is_not_placed() -> None:
    leader, worker = containers(spec_of(gpus=8, nodes=1))

    assert "--nnodes" not in leader["args"] + worker["args"]


@settings(deadline=None)
@given(st.integers(1, 8), st.integers(1, 16), st.sampled_from(["vllm", "sglang"]))
def test_nodes_share_the_resources_of_a_replica(gpus: int, nodes: int, engine: str) -> None:
    spec = spec_of(engine, gpus=gpus * nodes, nodes=nodes)
    assert not incompatibilities(LWS, deployment(spec), SCHEMA)

    for container in containers(spec):
        assert container["resources"]["limits"]["nvidia.com/gpu"] == str(gpus)
    assert rendered(spec).main["spec"]["leaderWorkerTemplate"]["size"] == nodes


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (spec_of(gpus=3), "2 nodes cannot share 3 GPUs equally"),
        (spec_of(nnodes="2"), 'engine.args "nnodes" places a node'),
        (spec_of(n="2"), 'engine.args "nnodes" places a node'),
        (spec_of(headless=""), 'engine.args "headless" places a node'),
        (spec_of(dp="2"), "data parallelism over 2 nodes is not supported"),
        (spec_of(tp="3", pp="1"), "parallel sizes tensor 3 × pipeline 1 cannot be divided by 2 nodes"),
        ({**spec_of(), "model": {"source": "custom"}, "image": "i"}, "LeaderWorkerSet starts an engine with"),
        (
            {**spec_of(), "podTemplate": {"metadata": {"labels": {"leaderworkerset.sigs.k8s.io/name": "x"}}}},
            "LeaderWorkerSet finds its pods by leaderworkerset.sigs.k8s.io/name",
        ),
    ],
)
def test_unsupported_spec_is_refused(spec: dict[str, Any], problem: str) -> None:
    [reported] = incompatibilities(LWS, deployment(spec), SCHEMA)

    assert reported.startswith(problem)


@pytest.mark.parametrize(
    ("status", "updating"),
    [
        ({"replicas": 2, "readyReplicas": 2, "updatedReplicas": 1}, True),
        ({"replicas": 1, "readyReplicas": 1, "updatedReplicas": 1}, False),
        ({"readyReplicas": 1, "conditions": [{"type": "UpdateInProgress", "status": "True"}]}, True),
    ],
)
def test_groups_of_earlier_spec_are_an_update(status: dict[str, Any], updating: bool) -> None:
    model = deployment({**spec_of(), "scaling": {"replicas": 2}})

    assert LWS.observe(model, {"status": status}).updating is updating


@pytest.mark.parametrize("nodes", [0, 65, "2", True])
def test_wrong_number_of_nodes_is_refused(nodes: Any) -> None:
    spec = {**spec_of(), "provider": {"name": "lws", "overrides": {"nodes": nodes}}}

    assert incompatibilities(LWS, deployment(spec), SCHEMA)


def test_manifest_is_generated_from_provider() -> None:
    documents = yaml.safe_load_all((HERE / "manifest.yaml").read_text())

    stored = [document for document in documents if document]

    assert stored == manifest(LWS, "example.com/kubefoundry-provider-lws:0.1.0")
