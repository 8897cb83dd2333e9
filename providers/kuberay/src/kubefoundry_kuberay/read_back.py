"""From a RayService to the spec of a ModelDeployment: `render` in reverse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubefoundry_kuberay.cluster import OWN_VOLUMES, TOLERATIONS_ANNOTATION
from kubefoundry_sdk import NotReadable, Object
from kubefoundry_sdk import read_back as common
from kubefoundry_sdk.read_back import UnreadableYaml, decode_yaml
from kubefoundry_sdk.status import part


def read_back(service: Object, helpers: Sequence[Object]) -> list[Object]:
    """Return the spec, in a list of one.

    Raises:
        NotReadable: The RayService does not serve a language model with `ray.serve.llm`.
    """
    content = part(service, "spec")
    application = _application(content.get("serveConfigV2"))
    cluster = part(content, "rayClusterConfig")
    groups = {str(part(group).get("groupName")): group for group in cluster.get("workerGroupSpecs") or ()}
    if not groups:
        raise NotReadable("it has no group of workers")
    spec = _model(_config(application))
    spec |= _scaling(application, groups, stopped=content.get("suspend") is True)
    group = next(iter(groups.values()))
    template = part(group, "template")
    metadata = {key: dict(values) for key, values in part(template, "metadata").items() if values}
    metadata.get("annotations", {}).pop(TOLERATIONS_ANNOTATION, None)
    spec |= common.pod_fields(_container(group), template.get("spec"), metadata, OWN_VOLUMES)
    head = _head(part(cluster, "headGroupSpec"))
    if part(template, "spec").get("imagePullSecrets"):
        head.pop("imagePullSecrets", None)
    return [{**spec, "provider": {"overrides": {"head": head}}} if head else spec]


def _application(text: Any) -> Object:
    try:
        applications = part(decode_yaml(str(text or ""))).get("applications") or []
    except UnreadableYaml as error:
        raise NotReadable(f"its serveConfigV2 {error}") from error
    if len(applications) != 1 or not str(part(applications[0]).get("import_path")).startswith(
        "ray.serve.llm:"
    ):
        raise NotReadable("its serveConfigV2 is not one application of ray.serve.llm")
    return dict(applications[0])


def _is_disaggregated(application: Object) -> bool:
    return str(application.get("import_path")).endswith("build_pd_openai_app")


def _config(application: Object) -> Any:
    """Return the configuration of the model, of prefill in disaggregated mode."""
    args = part(application, "args")
    if _is_disaggregated(application):
        return args.get("prefill_config")
    configs = list(args.get("llm_configs") or ())
    if len(configs) != 1:
        raise NotReadable(f"it serves {len(configs)} models; a ModelDeployment serves one")
    return configs[0]


def _model(config: Any) -> Object:
    loading = part(config, "model_loading_config")
    stated = {
        name.replace("_", "-"): common.text(value) for name, value in part(config, "engine_kwargs").items()
    }
    names = {"model": loading.get("model_source"), "served-model-name": loading.get("model_id")}
    return common.from_flags("vllm", stated | {name: str(value) for name, value in names.items() if value})


def _scaling(application: Object, groups: dict[str, Any], *, stopped: bool) -> Object:
    counts = [part(deployment).get("num_replicas") for deployment in application.get("deployments") or ()]
    replicas = [0 if stopped else count if isinstance(count, int) else 1 for count in counts] or [1]
    if not _is_disaggregated(application):
        group = next(iter(groups.values()))
        resources = common.amounts(part(_container(group), "resources"))
        return {"scaling": {"replicas": replicas[0]}, "resources": resources}
    sizes = {}
    for number, role in enumerate(("prefill", "decode")):
        count = replicas[number] if number < len(replicas) else 1
        sizes[role] = {"replicas": count, **common.amounts(part(_container(groups.get(role)), "resources"))}
    return {"serving": {"mode": "disaggregated"}, "scaling": sizes}


def _container(group: Any) -> Any:
    containers = part(group, "template", "spec").get("containers") or []
    return containers[0] if containers else {}


def _head(group: Any) -> Object:
    """Return `provider.overrides.head`."""
    params = {
        key: value
        for key, value in part(group, "rayStartParams").items()
        if (key, value) != ("num-cpus", "0")
    }
    requests = part(_container(group), "resources", "requests")
    secrets = [
        part(secret).get("name") for secret in part(group, "template", "spec").get("imagePullSecrets") or ()
    ]
    stated = {
        "resources": {name: requests[name] for name in ("cpu", "memory") if name in requests},
        "rayStartParams": params,
        "imagePullSecrets": secrets,
    }
    return {name: value for name, value in stated.items() if value}
