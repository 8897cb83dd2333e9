"""Calls the tool that runs inside the pods: its path and its arguments.

Its input is base64, so Kubernetes, shells and environments expand nothing in a user's text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubefoundry_llamastack import confidential
from kubefoundry_llamastack.api.spec import ExternalProvider
from kubefoundry_llamastack.names import (
    EXTRACT,
    INSTALL,
    MERGE,
    PROVIDER_SECONDS_ANNOTATION,
    endpoint_variable,
)
from kubefoundry_llamastack.render import provider_deployment, sidecars
from kubefoundry_llamastack.render.request import Distribution, UserConfig
from kubefoundry_sdk._api.kinds import Object
from llamastack_providers import layout
from llamastack_providers.request import PROVIDER_SECONDS, encode

PACKAGES: Final = f"{layout.EXTERNAL_PROVIDERS}/python-packages"
EFFECTIVE: Final = f"{layout.EFFECTIVE_CONFIG}/run.yaml"

FOLDER: Final = "/opt/llama-stack/tool"
FILE: Final = "llamastack-providers.pyz"
ZIPAPP: Final = f"{FOLDER}/{FILE}"

INPUT_LIMIT: Final = 512 * 1024
"""Longest input in characters, so that a pod's inputs fit into one API object (1.5 MiB)."""

RUN: Final = f"""\
python=python3
command -v "$python" >/dev/null || python=python
exec "$python" {ZIPAPP} "$@"
"""


def install(cr: Distribution) -> dict[str, list[str]]:
    """Return the command of each install container, by provider id."""
    commands = {}
    services = _services(cr)
    for order, (section, provider) in enumerate(cr.spec.providers()):
        fields = {
            **_provider_fields(provider, services),
            "container": f"{INSTALL}{provider.provider_id}",
            "api": section,
            "order": order,
        }
        if provider.config is not None:
            fields["config"] = provider.config
        commands[provider.provider_id] = _command("install", fields)
    return commands


def extract(image: str) -> list[str]:
    """Return the command of the container that extracts the distribution's own configuration."""
    return _command("extract-config", {"image": image, "container": EXTRACT})


def merge(cr: Distribution, image: str, user_config: UserConfig | None = None) -> list[str]:
    """Return the command of the container that merges the configuration.

    Errors in the user's configuration name the ConfigMap and the key, which the user has written.
    """
    deployments = [
        {"providerId": item.id, "urlVariable": endpoint_variable(item.id), "config": item.config or {}}
        for item in cr.spec.server.model_deployments
    ]
    fields: dict[str, Any] = {
        "image": image,
        "container": MERGE,
        "providers": _installed(cr),
        "modelDeployments": deployments,
    }
    if user_config is not None and (reference := cr.spec.server.user_config) is not None:
        fields["base"] = f"key '{user_config.key}' of ConfigMap '{reference.config_map_name}'"
    return _command("merge-config", fields)


def preflight(cr: Distribution, image: str) -> list[str]:
    """Return the value of preflight's `--input`.

    It has the image of each provider for messages, its deadline, and the variables whose values messages must
    not repeat.
    """
    fields: dict[str, Any] = {
        "image": image,
        "container": cr.spec.server.container_spec.name,
        "providers": _installed(cr),
        "seconds": provider_seconds(cr),
    }
    if secret := confidential.list_variables(cr):
        fields["secret"] = secret
    if unknown := confidential.find_other_source(cr):
        fields["unknown"] = unknown
    return encode(fields)


def provider_seconds(cr: Distribution) -> int:
    """Return the seconds that each provider has to load.

    Raises:
        ValueError: The annotation is not a number.
    """
    return int(cr.annotations.get(PROVIDER_SECONDS_ANNOTATION, PROVIDER_SECONDS))


def _installed(cr: Distribution) -> list[dict[str, Any]]:
    services = _services(cr)
    return [_provider_fields(provider, services) for _, provider in cr.spec.providers()]


def _services(cr: Distribution) -> dict[str, Object]:
    return {**sidecars.descriptions(cr), **provider_deployment.descriptions(cr)}


def _provider_fields(provider: ExternalProvider, services: Mapping[str, Object]) -> dict[str, Any]:
    """Return the fields of a provider that all commands get: id, image, and service if it has one."""
    fields: dict[str, Any] = {"providerId": provider.provider_id, "image": provider.image}
    if provider.provider_id in services:
        fields["service"] = services[provider.provider_id]
    return fields


def _command(subcommand: str, fields: dict[str, Any]) -> list[str]:
    return ["/bin/sh", "-c", RUN, "sh", subcommand, "--input", *encode(fields)]
