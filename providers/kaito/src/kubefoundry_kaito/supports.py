"""Problems of a ModelDeployment that KAITO cannot serve: a sentence each, with reason and remedy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubefoundry_kaito import llamacpp, nodes, template, vllm
from kubefoundry_kaito.overrides import overrides_of
from kubefoundry_kaito.preset_names import is_built_in, preset_name
from kubefoundry_kaito.probe import ACCESS_SECRET, ANY_MODEL, ENGINE_CONFIG
from kubefoundry_kaito.settings import Settings, is_preset
from kubefoundry_sdk import Deployment, Schema
from kubefoundry_sdk.engine import contradictions, is_switch, location_problems, repetitions, reserved
from kubefoundry_sdk.pod import QUEUE_LABEL, label_problems, volume_problems
from kubefoundry_sdk.spec import POD_SETTINGS, ModelDeploymentSpec, refused_fields

ENGINES: Final = ("vllm", "llamacpp")
"""The engines that the provider supports."""

LONGEST_NAME: Final = 52
"""The StatefulSet's revision, `<name>-<10 characters>`, is a label of its pods and limited to 63 characters (seen on
KAITO 0.12: longer names are accepted and hang forever). `<name>-headless`, a Service, would leave 54."""

OWN_LABELS: Final = ("kaito.sh/",)
"""The label by which KAITO's Service finds the pod."""

NVIDIA_GPU: Final = "nvidia.com/gpu"

MISLEADING_NAMES: Final = {
    "vllm": "VLLM_PORT",
    "sglang": "SGLANG_PORT",
    "ray": "RAY_PORT",
    "master": "MASTER_PORT",
    "llama-arg": "LLAMA_ARG_PORT",
}
"""Names of Services for which Kubernetes gives pods a variable that vLLM, SGLang, Ray, PyTorch or llama.cpp reads as
its port. KAITO gives its Service the name of the Workspace, and its presets' pods have such variables."""

OF_PODS: Final = (
    "model.storage.volumes",
    "model.storage.uri",
    "model.storage.offline",
    "engine.extraArgs",
    "resources.memory",
    "resources.cpu",
    "resources.cpuLimit",
    "env",
    "podTemplate.metadata.labels",
    "podTemplate.metadata.annotations",
    *POD_SETTINGS,
    "tolerations",
)
"""Fields of the pod and its command line, which a preset sets itself."""


def supports(deployment: Deployment, schema: Schema | None, settings: Settings) -> list[str]:
    """Return every problem; empty if the deployment can be rendered. Without a schema, only those of every KAITO.

    The provider's capabilities cover engine, serving mode and CPU or GPU.
    """
    spec = deployment.spec
    problems = [
        *_name(deployment.name),
        *_replicas(spec.scaling.replicas),
        *_queue(deployment),
        *nodes.problems(spec, schema, settings),
    ]
    if is_preset(spec, settings):
        problems += [*_preset(spec), *(_preset_schema(spec, schema) if schema else ())]
    else:
        problems += _template(spec, settings)
    return problems


def _queue(deployment: Deployment) -> Iterator[str]:
    if QUEUE_LABEL in deployment.propagated_labels:
        yield (
            f"KAITO passes label {QUEUE_LABEL} to no pod, so Kueue would not count them: remove the label, or choose "
            "another provider"
        )


def _name(name: str) -> Iterator[str]:
    if len(name) > LONGEST_NAME:
        yield (
            f'KAITO allows names of at most {LONGEST_NAME} characters, but "{name}" has {len(name)}: '
            "choose a shorter one"
        )
    if variable := MISLEADING_NAMES.get(name):
        yield (
            f'KAITO creates a Service called "{name}", which gives pods of its namespace {variable}=tcp://…, and an '
            "engine that reads it as its port exits: choose another name"
        )
    if name[0].isdigit():
        yield (
            f'KAITO creates a Service called "{name}", and before Kubernetes 1.36 the name of a Service begins with '
            "a letter: choose another name"
        )
    if "." in name:
        yield f'KAITO does not allow a dot in a name, but "{name}" has one: choose another name'


def _replicas(replicas: int) -> Iterator[str]:
    if replicas == 0:
        yield "KAITO cannot scale to 0 replicas: set scaling.replicas to 1, or delete the ModelDeployment"
    elif replicas > 1:
        yield (
            f"KAITO serves 1 replica, not {replicas} (further pods of a Workspace get no requests): "
            "set scaling.replicas to 1"
        )


def _preset(spec: ModelDeploymentSpec) -> Iterator[str]:
    if spec.model.source == "custom":
        yield "KAITO needs an image when model.source is custom: set image"
        return
    model = spec.model.id or ""
    if not spec.engine.trust_remote_code and not is_built_in(model):
        yield (
            f'KAITO runs "{model}" always with --trust-remote-code: '
            "set engine.trustRemoteCode to true, or set image"
        )
    if spec.resources.gpu and spec.resources.gpu.type != NVIDIA_GPU:
        yield (
            f"KAITO presets run on {NVIDIA_GPU} only, not {spec.resources.gpu.type}: "
            "remove resources.gpu.type, or set image"
        )
    yield from refused_fields(
        spec, dict.fromkeys(OF_PODS, "KAITO presets do not support {field}: remove it, or set image")
    )
    yield from contradictions(vllm.derived(spec), spec.engine.args)
    for flag, value in sorted(spec.engine.args.items()):
        if is_switch(flag, value):
            yield (
                f'KAITO presets pass only engine.args that have a value, and "{flag}" has none: '
                "remove it, or set image"
            )


def _preset_schema(spec: ModelDeploymentSpec, schema: Schema) -> Iterator[str]:
    if ENGINE_CONFIG not in schema.features:
        yield "Before KAITO 0.4.4 a preset may not run vLLM: upgrade KAITO, or set image"
        return
    model = spec.model.id or ""
    if preset_name(model, any_model=ANY_MODEL in schema.features) is None:
        yield f'KAITO before 0.9 has no preset for "{model}": upgrade KAITO, or set image'
    if spec.secrets.hugging_face_token and ACCESS_SECRET not in schema.features:
        yield (
            "KAITO's v1alpha1 presets do not support secrets.huggingFaceToken: "
            "remove it, upgrade KAITO to 0.4.5 or later, or set image"
        )


def _template(spec: ModelDeploymentSpec, settings: Settings) -> Iterator[str]:
    yield from label_problems(spec.pod_template.metadata.labels, "KAITO", OWN_LABELS)
    yield from volume_problems(spec, "KAITO's provider", template.own_volumes(spec))
    yield from _image_volumes(spec)
    yield from location_problems(spec, "KAITO's provider", ENGINES)
    if settings.image(spec) is None:
        yield f"KAITO has no default image for {spec.engine.type}: set image"
    is_vllm, server = spec.engine.type == "vllm", overrides_of(spec).llamacpp_server
    derived = vllm.derived(spec) if is_vllm else llamacpp.derived(spec, server)
    yield from contradictions(derived, spec.engine.args)
    yield from repetitions(derived, spec.engine.extra_flags)
    if is_vllm:
        for written in reserved(vllm.ELSEWHERE, spec.engine.extra_flags):
            yield (
                f"engine.extraArgs has the flag {written}, but KAITO's Service and the probe use port {vllm.PORT} of "
                "the pod without TLS: remove it"
            )
    elif server == "aikit":
        yield from _aikit(spec)


def _image_volumes(spec: ModelDeploymentSpec) -> Iterator[str]:
    for volume in spec.model.storage.volumes:
        if volume.image:
            yield (
                "KAITO decodes the pods with the Kubernetes types of its release, and its CRD does not show whether "
                f"these have image volumes, so volume {volume.name} of model.storage may get lost: use a claim, or "
                "choose another provider"
            )


def _aikit(spec: ModelDeploymentSpec) -> Iterator[str]:
    storage = spec.model.storage
    settings = {
        "a volume with purpose modelCache": any(volume.purpose == "modelCache" for volume in storage.volumes),
        "model.storage.offline": storage.offline,
    }
    for setting, is_set in settings.items():
        if is_set:
            yield (
                f"AIKit's runner downloads the model into its own folder at each start, so it cannot honour "
                f"{setting}: remove it, or use an image of llama.cpp's server with "
                "provider.overrides.llamacppServer: llama-server"
            )
    if spec.model.source != "huggingface":
        return
    if llamacpp.file_of(spec):
        yield (
            f"AIKit's runner expects a repository, org/repository, but model.id {spec.model.id} names a file in one: "
            "use a repository that has one GGUF file, or an image of llama.cpp's server with "
            "provider.overrides.llamacppServer: llama-server, which takes a file"
        )
    if spec.model.served_name is not None:
        yield (
            "AIKit names the model after its GGUF file, so it cannot honour model.servedName: remove it, "
            "or use an image of llama.cpp's server with provider.overrides.llamacppServer: llama-server"
        )
