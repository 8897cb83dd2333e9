"""Merges providers into a run configuration with pure functions.

sources §5.2 "Configuration Merge Algorithm", as clarified in sources §5.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from llamastack_providers.errors import Code, Failure
from llamastack_providers.request import ModelEndpoint

Entry = dict[str, Any]
Config = dict[str, Any]

MODEL_SECTION: Final = "inference"
MODEL_TYPE: Final = "remote::vllm"
_NAME: Final = "external-providers"
_STATE: Final = "${env.SQLITE_STORE_DIR:=~/.llama/distributions/external-providers}"
_SMALLEST: Final[Config] = {
    "version": 2,
    # releases have different keys for the name
    "image_name": _NAME,
    "distro_name": _NAME,
    # 0.3 has no defaults for it; later releases accept what it accepts, and earlier ones ignore it
    "storage": {
        "backends": {
            "kv_default": {"type": "kv_sqlite", "db_path": f"{_STATE}/kv_store.db"},
            "sql_default": {"type": "sql_sqlite", "db_path": f"{_STATE}/sql_store.db"},
        },
        "stores": {
            "metadata": {"backend": "kv_default", "namespace": "registry"},
            "inference": {"backend": "sql_default", "table_name": "inference_store"},
            "conversations": {"backend": "sql_default", "table_name": "openai_conversations"},
        },
    },
}
"""The smallest configuration that every release of docs/llamastack/releases.md starts from."""
_VARIABLE: Final = re.compile(r"\$\{env\.[A-Z0-9_]+:[=+]([^}]*)\}")
"""llama_stack/core/stack.py, replace_env_vars, 0.7.3."""


@dataclass(frozen=True, slots=True)
class Addition:
    """A provider to add.

    Attributes:
        section: llama-stack's API.
        entry: The provider's entry in run.yaml.
        source: Its kind in messages.
        text: Its image or its variable, for messages.
    """

    section: str
    entry: Entry
    source: str
    text: str


def model_addition(model: ModelEndpoint) -> Addition:
    """Return the provider for a ModelDeployment. Its address can change without changing the configuration."""
    config = {"refresh_models": True, **model.config, "base_url": f"${{env.{model.url_variable}}}"}
    entry = {"provider_id": model.provider_id, "provider_type": MODEL_TYPE, "config": config}
    return Addition(MODEL_SECTION, entry, "ModelDeployment", model.url_variable)


def merged(base: Any, additions: Sequence[Addition]) -> tuple[Config, list[str]]:
    """Return the configuration with the additions, and warnings. Does not modify `base`.

    Raises:
        Failure: InvalidBaseConfig.
    """
    config = _checked(base)
    providers = {name: list(entries or []) for name, entries in (config.get("providers") or {}).items()}
    warnings: list[str] = []
    for addition in additions:
        provider_id = addition.entry["provider_id"]
        section = providers.setdefault(addition.section, [])
        for replaced_entry in [entry for entry in section if provider_id in _ids(entry)]:
            section.remove(replaced_entry)
            warnings.append(_override(addition, replaced_entry))
        section.append(addition.entry)
        warnings += _same_id_elsewhere(addition, providers)
    config["providers"] = providers
    apis = config.get("apis")
    if apis:
        # the server shows a section that is not listed and answers 404 (sources §5.3)
        config["apis"] = [
            *apis,
            *(name for name in dict.fromkeys(entry.section for entry in additions) if name not in apis),
        ]
    return config, warnings


def extra_providers(additions: Iterable[Addition]) -> Config:
    """Return the content of extra-providers.yaml (sources §5.2 "Extra Providers Configuration")."""
    providers: dict[str, list[Entry]] = {}
    for addition in additions:
        providers.setdefault(addition.section, []).append(addition.entry)
    return {"apiVersion": "llamastack.io/v1alpha1", "kind": "ExternalProviders", "providers": providers}


def _checked(base: Any) -> Config:
    if base is None:
        return dict(_SMALLEST)
    if not isinstance(base, dict):
        raise Failure(Code.InvalidBaseConfig, "the file does not contain a mapping")
    providers = base.get("providers")
    if providers is not None and not isinstance(providers, dict):
        raise Failure(Code.InvalidBaseConfig, "providers: is not a mapping of API to list")
    for name, entries in (providers or {}).items():
        if entries is not None and not (
            isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)
        ):
            raise Failure(Code.InvalidBaseConfig, f"providers.{name}: is not a list of providers")
    if not isinstance(base.get("apis"), (list, type(None))):
        raise Failure(Code.InvalidBaseConfig, "apis: is not a list")
    return dict(base)


def _ids(entry: Entry) -> Sequence[str]:
    """Return the ids of a provider, including the one that `${env.NAME:+id}` or `${env.NAME:=id}` expands to."""
    written = entry.get("provider_id")
    if not isinstance(written, str):
        return ()
    return (written, *_VARIABLE.findall(written))


def _override(addition: Addition, replaced: Entry) -> str:
    subject = "External provider" if addition.source == "external" else addition.source
    return (
        f"{subject} '{addition.entry['provider_id']}' overrides base provider in API '{addition.section}'\n"
        f"  Base type: {replaced.get('provider_type')}\n"
        f"  External type: {addition.entry['provider_type']}\n"
        f"  Using: {addition.text}"
    )


def _same_id_elsewhere(addition: Addition, providers: dict[str, list[Entry]]) -> list[str]:
    provider_id = addition.entry["provider_id"]
    return [
        f"Provider id '{provider_id}' of API '{addition.section}' is also in API '{name}'; both are kept"
        for name, entries in providers.items()
        if name != addition.section and any(provider_id in _ids(entry) for entry in entries)
    ]
