"""What is rendered, read by Ray's own classes (`make test-ray`; skipped where Ray is not installed).

`ray.serve.llm` itself needs vLLM, so the schema of its arguments is taken from where it stands.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kubefoundry_kuberay.cluster import ray_cluster
from kubefoundry_kuberay.overrides import Head
from kubefoundry_kuberay.serve_config import serve_config
from kubefoundry_kuberay.settings import DEFAULT_IMAGE, Settings
from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk._provider.contract import Deployment

ray = pytest.importorskip("ray", reason="Ray is not installed here; make test-ray brings it")
pytest.importorskip("pyarrow")

from ray.autoscaler._private.kuberay import autoscaling_config  # noqa: E402
from ray.llm._internal.serve.core.configs.llm_config import LLMConfig  # noqa: E402
from ray.serve._private.deploy_utils import get_app_code_version  # noqa: E402
from ray.serve.schema import ServeDeploySchema  # noqa: E402

Spec = dict[str, Any]


def aggregated(replicas: int = 1, gpus: int = 1, **engine: Any) -> Spec:
    return {
        "model": {"id": "org/model", "servedName": engine.pop("served", None)},
        "engine": {"type": "vllm", **engine},
        "scaling": {"replicas": replicas},
        "resources": {"gpu": {"count": gpus}, "memory": "32Gi"},
    }


def disaggregated(prefill: int = 1, decode: int = 1, gpus: int = 1, **engine: Any) -> Spec:
    role = {"gpu": {"count": gpus}, "memory": "64Gi"}
    return {
        "model": {"id": "org/model"},
        "engine": {"type": "vllm", **engine},
        "serving": {"mode": "disaggregated"},
        "scaling": {
            "prefill": {**role, "replicas": prefill},
            "decode": {**role, "replicas": decode},
        },
    }


ARGS = {
    "gpu-memory-utilization": "0.9",
    "enforce-eager": "",
    "enable-prefix-caching": "false",
    "quantization": "awq",
    "limit-mm-per-prompt": '{"image": 2}',
    "revision": "12e4567",
}
SPECS = {
    "least": aggregated(),
    "everything": aggregated(3, 4, contextLength=8192, trustRemoteCode=True, args=ARGS),
    "zero": aggregated(0),
    "odd names": aggregated(served="team/llama 3.1:8b"),
    "parallel sizes": aggregated(gpus=8, args={"pipeline-parallel-size": "2"}),
    "roles": disaggregated(),
    "roles with everything": disaggregated(2, 3, 4, contextLength=8192, trustRemoteCode=True, args=ARGS),
    "roles at zero": disaggregated(0, 0),
}


def deployed(spec: Spec) -> ServeDeploySchema:
    text = serve_config(ModelDeploymentSpec.model_validate(spec))
    return ServeDeploySchema.model_validate(yaml.safe_load(text))


@pytest.fixture(params=SPECS)
def spec(request: pytest.FixtureRequest) -> Spec:
    return SPECS[request.param]


def test_ray_is_the_one_of_the_default_image() -> None:
    assert ray.__version__ == Settings().ray_version_of(DEFAULT_IMAGE)


def test_serve_and_its_llm_application_take_the_config(spec: Spec) -> None:
    (application,) = deployed(spec).applications

    stated = application.args.get("llm_configs") or list(application.args.values())
    configs = [LLMConfig.model_validate(config) for config in stated]
    assert len(configs) == len(application.deployments)
    assert {config.model_id for config in configs} == {spec["model"].get("servedName") or "model"}


def test_scaling_is_no_new_code_to_serve() -> None:
    """Serve replaces every replica where the code version changes."""
    versions = [
        get_app_code_version(deployed(spec).applications[0])
        for spec in (aggregated(1), aggregated(4), aggregated(1, contextLength=8192))
    ]

    assert versions[0] == versions[1] != versions[2]


def test_autoscaler_knows_what_a_worker_has(spec: Spec) -> None:
    typed = Deployment("m", "default", "uid", 1, ModelDeploymentSpec.model_validate(spec))
    cluster = ray_cluster(typed, Head(), DEFAULT_IMAGE, ray.__version__)

    head = autoscaling_config._node_type_from_group_spec(cluster["headGroupSpec"], is_head=True)
    assert head["resources"]["CPU"] == 0
    for group in cluster["workerGroupSpecs"]:
        node = autoscaling_config._node_type_from_group_spec(group, is_head=False)
        gpus = int(group["rayStartParams"]["num-gpus"])
        assert (node["min_workers"], node["max_workers"]) == (0, 1000)
        assert (node["resources"]["GPU"], node["resources"]["CPU"]) == (gpus, gpus + 2)
        if group["groupName"] != "gpu":
            assert node["resources"][group["groupName"]] == gpus
