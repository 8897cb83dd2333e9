"""Implements `merge-config`: merges the results of the install containers into the base configuration."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from llamastack_providers import apis, install, layout, merge, package_spec, record, service, site, yaml_file
from llamastack_providers.errors import Code, Failure
from llamastack_providers.layout import Layout
from llamastack_providers.request import Merge

_TOKEN_BYTES: Final = 32
_TOKEN_MODE: Final = 0o640
_OUTPUTS: Final = ("run.yaml", "extra-providers.yaml", "merge-log.txt")


@dataclass(frozen=True, slots=True)
class _Installed:
    """The result of an install container."""

    order: int
    provider_id: str
    image: str
    addition: merge.Addition


def run(request: Merge, places: Layout) -> list[str]:
    """Write run.yaml, extra-providers.yaml and merge-log.txt, or none of them. Return warnings.

    Raises:
        Failure: A configuration or a provider's metadata is unusable.
        OSError: A file is not readable or writable.
    """
    for name in _OUTPUTS:
        (places.config / name).unlink(missing_ok=True)
    externals = _externals(request, places.metadata)
    additions = [*map(merge.model_addition, request.model_endpoints), *externals]
    base = _base(places.base_config, request.base)
    try:
        config, warnings = merge.merged(base, additions)
    except Failure as failure:
        failure.reason = f"{request.base}: {failure.reason}"
        raise
    warnings += _shadowed(places)
    log = [
        f"{item.entry['provider_id']}: {item.entry['provider_type']} in {item.section}" for item in additions
    ]
    texts = (
        yaml_file.dump(config),
        yaml_file.dump(merge.extra_providers(externals)),
        "".join(f"{line}\n" for line in [*log, *(f"WARNING: {item}" for item in warnings)]),
    )
    places.config.mkdir(parents=True, exist_ok=True)
    for name, text in zip(_OUTPUTS, texts, strict=True):
        draft = places.config / f".{name}.draft"
        draft.write_text(text, encoding="utf-8")
        draft.chmod(0o664)
        draft.replace(places.config / name)
    for item in request.services.values():
        if item.token_file:
            _write_token(places.at(item.token_file))
    return warnings


def _write_token(path: Path) -> None:
    """Write a new token, which the service's container reads by the pod's group."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.touch(_TOKEN_MODE)
    # The mask of the process may have removed the group's right.
    path.chmod(_TOKEN_MODE)
    path.write_text(secrets.token_hex(_TOKEN_BYTES))


def _shadowed(places: Layout) -> list[str]:
    """Return the warnings of preflight, for the log: a running server leaves no message for the kubelet."""
    try:
        return site.shadowed(site.read(places.packages, record.read_all(places.metadata)))
    except Failure:
        # Preflight reports the failure in the server's own environment.
        return []


def _base(path: Path, name: str) -> Any:
    try:
        return yaml_file.load(path, name)
    except FileNotFoundError:
        raise Failure(Code.BaseConfigMissing, f"{name} does not exist") from None


def _externals(request: Merge, metadata: Path) -> list[merge.Addition]:
    """Return the installed providers in the order of the custom resource."""
    folders = sorted(path for path in metadata.iterdir() if path.is_dir()) if metadata.is_dir() else []
    missing = [item for item in request.expected if item not in {folder.name for folder in folders}]
    for provider_id in missing:
        reason = f"{layout.EXTERNAL_PROVIDERS}/metadata/{provider_id}/ is missing"
        image = request.expected[provider_id]
        raise Failure(Code.MissingMetadata, reason, provider_id=provider_id, image=image)
    installed = sorted(
        (_installed(folder, request) for folder in folders),
        key=lambda item: item.order,
    )
    images: dict[str, str] = {}
    for item in installed:
        if other_image := images.get(item.provider_id):
            reason = f"providerId '{item.provider_id}' is used by the images {other_image} and {item.image}"
            raise Failure(Code.DuplicateProvider, reason, provider_id=item.provider_id, image=item.image)
        images[item.provider_id] = item.image
    return [item.addition for item in installed]


def _installed(folder: Path, request: Merge) -> _Installed:
    crd_entry: dict[str, Any] = {}
    for name in (layout.CRD_FILE, layout.SPEC_FILE):
        if not (folder / name).is_file():
            reason = f"{layout.EXTERNAL_PROVIDERS}/metadata/{folder.name}/{name} is missing"
            raise Failure(
                Code.MissingMetadata,
                reason,
                provider_id=folder.name,
                image=crd_entry.get("image", request.expected.get(folder.name, "")),
            )
        if name == layout.CRD_FILE:
            crd_entry = yaml_file.load(folder / name, f"metadata/{folder.name}/{name}")
    try:
        spec = package_spec.read(folder / layout.SPEC_FILE, f"metadata/{folder.name}/{layout.SPEC_FILE}")
    except Failure as failure:
        failure.provider_id, failure.image = folder.name, crd_entry["image"]
        raise
    provider_id, api, image = crd_entry["providerId"], crd_entry["api"], crd_entry["image"]
    install.check_placement(spec, provider_id, image, api)
    entry: merge.Entry = {
        "provider_id": provider_id,
        "provider_type": spec.provider_type,
        "module": spec.package_name,
    }
    if "config" in crd_entry:
        entry["config"] = crd_entry["config"]
    if provider_id in request.services and spec.service is not None:
        address = {spec.service.config_key: f"${{env.{service.url_variable(provider_id)}}}"}
        entry["config"] = {**entry.get("config", {}), **address}
    addition = merge.Addition(apis.run_name(api) or api, entry, "external", f"image {image}")
    return _Installed(crd_entry["order"], provider_id, image, addition)
