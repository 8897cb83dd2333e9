"""vLLM's keyword arguments from the spec: typed `engine.args`, the fields, and the parallel sizes.

`ray.serve.llm` passes `engine_kwargs` to vLLM's engine arguments unchanged: names with underscores, and numbers and
booleans as such, not as text (sources §4.5).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from kubefoundry_kuberay.roles import Role
from kubefoundry_sdk.engine import LOAD_FORMAT, STREAMER, is_dotted, json_value, parallel
from kubefoundry_sdk.spec import ModelDeploymentSpec, refused_fields

Kwargs = dict[str, Any]

KV_TRANSFER: Final = {"kv_connector": "NixlConnector", "kv_role": "kv_both"}
"""The configuration with which prefill passes its cache to decode, unless engine.args set it (sources §4.5)."""

OWNED: Final = {
    "host": "Ray Serve listens for requests itself; remove it",
    "port": "Ray Serve listens for requests itself, on port 8000; remove it",
    "data_parallel_size": "KubeRay runs one engine a replica; remove it and use scaling.replicas",
}
"""Arguments that the user cannot set here, with reason and remedy."""

SERVER: Final = frozenset(
    {
        "allow_credentials",
        "allowed_headers",
        "allowed_methods",
        "allowed_origins",
        "api_key",
        "api_server_count",
        "disable_fastapi_docs",
        "disable_frontend_multiprocessing",
        "disable_uvicorn_access_log",
        "enable_request_id_headers",
        "enable_server_load_tracking",
        "enable_ssl_refresh",
        "headless",
        "log_config_file",
        "lora_modules",
        "middleware",
        "root_path",
        "uds",
        "uvicorn_log_level",
    }
)
"""Arguments of vLLM's HTTP server, which does not run here (vllm/entrypoints/openai/cli_args.py). `ray.serve.llm`
does honour those for responses, such as chat templates and tool parsers."""

SERVER_PREFIXES: Final = ("ssl_", "h11_")

TEXTS: Final = frozenset({"revision", "code_revision", "tokenizer_revision", "served_model_name", "model"})
"""Arguments whose value stays text even if it looks like a number (a commit may be all digits)."""

_INTEGER: Final = re.compile(r"-?[0-9]{1,18}")
_FLOAT: Final = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?([eE][+-]?[0-9]{1,2})?")


def kwargs(spec: ModelDeploymentSpec, role: Role) -> Kwargs:
    """Return the arguments of a role's engine, sorted by name. Call it only if `problems` found none."""
    stated = arguments(spec)
    fields = _fields(spec)
    result = {name: value for name, value in stated.items() if name not in ("model", "served_model_name")}
    if fields["max_model_len"] is not None:
        result["max_model_len"] = fields["max_model_len"]
    if fields["trust_remote_code"]:
        result["trust_remote_code"] = True
    if spec.model.storage.uri:
        result.setdefault(_name(LOAD_FORMAT), STREAMER)
    result["tensor_parallel_size"], _ = parallel_sizes(spec, role)
    if role.exclusive:
        result.setdefault("kv_transfer_config", dict(KV_TRANSFER))
    return dict(sorted(result.items()))


def parallel_sizes(spec: ModelDeploymentSpec, role: Role) -> tuple[int, int]:
    """Return tensor and pipeline parallel size: from engine.args, else for all GPUs of the replica (contract §2)."""
    sizes = parallel("vllm", spec.engine.args, role.gpus)
    return sizes.tensor, sizes.pipeline


def engines_per_worker(spec: ModelDeploymentSpec, role: Role) -> int:
    """Return the number of engines that Ray can put on one worker: more than one if engine.args use fewer GPUs."""
    tensor, pipeline = parallel_sizes(spec, role)
    return max(1, role.gpus // (tensor * pipeline))


def arguments(spec: ModelDeploymentSpec) -> Kwargs:
    """Return `engine.args` with vLLM's names and typed values."""
    return {_name(flag): _typed(_name(flag), text) for flag, text in spec.engine.args.items()}


def problems(spec: ModelDeploymentSpec) -> list[str]:
    """Return a sentence for each problem of `engine.args` and `engine.extraArgs`."""
    extra = (
        "KubeRay starts engines without a command line, so it has no place for {field}: use engine.args, whose JSON "
        "lists become lists"
    )
    return [*_contradictions(spec), *_owned(spec), *refused_fields(spec, {"engine.extraArgs": extra})]


def _contradictions(spec: ModelDeploymentSpec) -> Iterator[str]:
    """Refuse an arg that repeats a field with another value (contract §2)."""
    paths = {
        "model": "model.id",
        "served_model_name": "model.servedName",
        "max_model_len": "engine.contextLength",
        "trust_remote_code": "engine.trustRemoteCode",
    }
    fields = _fields(spec)
    for flag, text in sorted(spec.engine.args.items()):
        name = _name(flag)
        field = fields.get(name)
        if field is not None and _typed(name, text) != field:
            yield (
                f"engine.args {flag} is {text!r}, but {paths[name]} is {json.dumps(field)}: "
                f"state it in {paths[name]} only"
            )


def _owned(spec: ModelDeploymentSpec) -> Iterator[str]:
    for flag, text in sorted(spec.engine.args.items()):
        name = _name(flag)
        if is_dotted(flag):
            whole = flag.partition(".")[0]
            yield f"KubeRay does not support engine.args {flag}, a flag with a dot: set {whole} to a JSON value"
        if name in OWNED and (name, text) != ("data_parallel_size", "1"):
            yield f"KubeRay does not support engine.args {flag}: {OWNED[name]}"
        if name in SERVER or name.startswith(SERVER_PREFIXES):
            yield (
                f"KubeRay does not support engine.args {flag}: Ray Serve answers requests in place of vLLM's HTTP "
                "server and would not obey it; remove it"
            )
        if name == "distributed_executor_backend" and text != "ray":
            yield f"KubeRay does not support engine.args {flag} {text!r}: engines run on Ray; remove it"


def _fields(spec: ModelDeploymentSpec) -> Kwargs:
    """Return the fields that are engine arguments, too; None if a field is not set."""
    return {
        "model": spec.model.id,
        "served_model_name": spec.served_name,
        "max_model_len": spec.engine.context_length,
        "trust_remote_code": spec.engine.trust_remote_code,
    }


def _name(flag: str) -> str:
    return flag.replace("-", "_")


def _typed(name: str, text: str) -> Any:
    """Return the typed value: `""` and `"true"` are true, `"false"` is false; numbers and JSON values are parsed."""
    if name in TEXTS:
        return text
    if text in ("", "true"):
        return True
    if text == "false":
        return False
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if text.startswith(("{", "[")):
        try:
            return json_value(text)
        except ValueError:
            return text
    return text
