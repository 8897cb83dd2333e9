"""`spec.serveConfigV2`: the Ray Serve application, as YAML (sources §4.5).

Replica counts are under `deployments`, not among the application's `args`: Serve treats a change of `args` as new
code and replaces every replica, but only scales if `deployments[].num_replicas` changes
(ray/serve/_private/deploy_utils.py `get_app_code_version`; seen on Ray 2.56 and 2.60). `num_replicas: 1` in the args
never changes; without it `ray.serve.llm` enables Serve's own autoscaling, which overrides the count.
"""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

from kubefoundry_kuberay.engine_kwargs import kwargs, parallel_sizes
from kubefoundry_kuberay.roles import Role, roles
from kubefoundry_sdk.engine import model_location
from kubefoundry_sdk.spec import ModelDeploymentSpec

APPLICATION: Final = "llm"
"""Name of the Serve application."""

MAX_BUNDLES: Final = 1024
"""Most GPUs of an engine with a placement group: `serveConfigV2` lists a bundle for each, some 30 bytes. An engine
runs in one worker pod here, and no node has that many."""

_PLAIN: Final = re.compile(r"[a-z][a-z_]+[a-z]")


def serve_config(spec: ModelDeploymentSpec) -> str:
    """Return `serveConfigV2`, YAML text with one Serve application."""
    return as_yaml({"applications": [_application(spec)]})


def _application(spec: ModelDeploymentSpec) -> dict[str, Any]:
    parts = roles(spec)
    if spec.serving.mode == "disaggregated":
        builder = "build_pd_openai_app"
        args: dict[str, Any] = {f"{role.name}_config": _llm_config(spec, role) for role in parts}
    else:
        builder = "build_openai_app"
        args = {"llm_configs": [_llm_config(spec, role) for role in parts]}
    return {
        "name": APPLICATION,
        "route_prefix": "/",
        "import_path": f"ray.serve.llm:{builder}",
        "args": args,
        "deployments": [
            {"name": _deployment_name(spec, role), "num_replicas": max(1, role.replicas)} for role in parts
        ],
    }


def _llm_config(spec: ModelDeploymentSpec, role: Role) -> dict[str, Any]:
    config: dict[str, Any] = {
        "model_loading_config": {"model_id": spec.served_name, "model_source": model_location(spec)},
        "engine_kwargs": kwargs(spec, role),
        "deployment_config": {"num_replicas": 1},
    }
    if role.exclusive:
        tensor, pipeline = parallel_sizes(spec, role)
        bundle = {"GPU": 1, role.name: 1}
        config["placement_group_config"] = {"bundles": [dict(bundle) for _ in range(tensor * pipeline)]}
    return config


def _deployment_name(spec: ModelDeploymentSpec, role: Role) -> str:
    """Return the name that `ray.serve.llm` gives a Serve deployment.

    Source: ray/llm/_internal/serve/core/server/builder.py, Ray 2.52 to 2.60.
    """
    model = (spec.served_name or "").replace("/", "--").replace(".", "_")
    return f"{role.prefix}:{model}"


# libyaml's emitter, if PyYAML was built with it, is three times as fast
_Fastest: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_Fastest):  # type: ignore[misc]
    """Quotes every text but plain words: Go's YAML reads `1e5`, `y` and `0o7` differently from Python's."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = None if _PLAIN.fullmatch(text) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def as_yaml(content: dict[str, Any]) -> str:
    """Return YAML text with the keys in the given order, without references."""
    # never fold lines: a fold inside a quoted text is hard to read in `kubectl get -o yaml`
    text: str = yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=2**31 - 1)
    return text
