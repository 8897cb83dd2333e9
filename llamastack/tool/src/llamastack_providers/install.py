"""Implements `install`: installs the wheels of one provider image into the tree that all providers share.

Nothing is written to the tree before all checks have passed. After a kill at any moment, a rerun gives the
same tree.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from llamastack_providers import (
    apis,
    conflicts,
    layout,
    package_spec,
    placement,
    record,
    request,
    service,
    staging,
    wheels,
    yaml_file,
)
from llamastack_providers.dependencies import Distribution
from llamastack_providers.errors import Code, Failure
from llamastack_providers.layout import Layout
from llamastack_providers.package_spec import PackageSpec
from llamastack_providers.record import Record
from llamastack_providers.service import Service

_UMASK: Final = 0o002
"""Group-writable: the next provider's image may run as another user of the pod's group (its fsGroup)."""


def run(provider: request.Provider, places: Layout) -> tuple[dict[str, str], list[str]]:
    """Install the provider.

    Returns:
        Its package, version and type, and warnings.

    Raises:
        Failure: The image or its packages are unusable.
        OSError: A file is not readable or writable.
    """
    os.umask(_UMASK)
    if provider.order == 0:
        # The volume outlives the pod's sandbox, and with a new sandbox all containers run again.
        _empty(places)
    spec = _spec(provider, places)
    selection = wheels.select(spec, places.provider)
    chosen = [wheels.read(path) for path in selection.paths]
    for problem in wheels.check(chosen):
        raise problem
    own = tuple(
        Distribution(wheel.name, wheel.version, wheel.requires, provider.provider_id) for wheel in chosen
    )
    others = record.read_all(places.metadata)
    previous = others.pop(provider.provider_id, None)
    conflicts.check(own, others)
    stage = staging.fresh(places.staging)
    try:
        staged = staging.unpack(selection.paths, stage)
        files = placement.files_of(staged)
        content = frozenset(file for wheel in chosen for file in wheel.files if file not in wheel.scripts)
        moves = placement.to_move(staged, places.packages, files, others, content)
        if previous:
            placement.remove(previous, places.packages, others)
        new_record = Record(provider.provider_id, provider.image, provider.order, own, files)
        _write(new_record, provider, places, others, staged, moves)
    finally:
        staging.clear(stage)
    unlisted = [
        f"{name} is in packages/ but not in spec.dependencyWheels, so it was not installed"
        for name in selection.unlisted
    ]
    return {"package": spec.name, "version": spec.version, "providerType": spec.provider_type}, [
        *unlisted,
        *placement.shared(files, moves, others),
    ]


def check_placement(spec: PackageSpec, provider_id: str, image: str, section: str) -> None:
    """Check that the image implements the API that it is listed under (FR-023, FR-032).

    Raises:
        Failure: ApiMismatch.
    """
    if apis.run_name(section) == spec.api:
        return
    reason = (
        f"Provider '{provider_id}' (image: {image})\n"
        f"declares api={spec.api} in {layout.SPEC_FILE}\n"
        f"but is placed under externalProviders.{apis.section(section)}"
    )
    raise Failure(Code.ApiMismatch, reason, provider_id=provider_id, image=image, api=apis.section(spec.api))


def check_service(
    spec: PackageSpec, provider_id: str, entry: Service | None, config: Mapping[str, Any] | None
) -> None:
    """Check that the image and the provider's entry in the custom resource agree about a service.

    Raises:
        Failure: ServiceMissing, ServiceNeeded, TransportUnsupported or ConfigKeyTaken.
    """
    packaged = spec.service
    if entry is None:
        if packaged is not None and packaged.required:
            reason = f"{layout.SPEC_FILE} says spec.service.required, but the provider has no service"
            raise Failure(Code.ServiceNeeded, reason, provider_id=provider_id)
        return
    if packaged is None:
        reason = f"the provider has a service, but {layout.SPEC_FILE} has no spec.service"
        raise Failure(Code.ServiceMissing, reason, provider_id=provider_id)
    supported = [service.TRANSPORTS[name] for name in packaged.transports]
    if entry.transport not in supported:
        reason = (
            f"service.transport is {entry.transport}, but the image supports only {' and '.join(supported)}"
        )
        raise Failure(Code.TransportUnsupported, reason, provider_id=provider_id)
    if packaged.config_key in (config or {}):
        reason = f"config.{packaged.config_key} is set, but it is where the address of the service is written"
        raise Failure(Code.ConfigKeyTaken, reason, provider_id=provider_id)


def crd_config(provider: request.Provider) -> dict[str, Any]:
    """Return the content of crd-config.yaml: the provider's entry in the custom resource.

    `config` is there only if the user gave it.
    """
    value: dict[str, Any] = {"providerId": provider.provider_id, "api": provider.api}
    if provider.config is not None:
        value["config"] = provider.config
    return {**value, "image": provider.image, "order": provider.order}


def _spec(provider: request.Provider, places: Layout) -> PackageSpec:
    try:
        spec = package_spec.read(places.provider / layout.SPEC_FILE)
    except FileNotFoundError:
        raise Failure(Code.MissingSpec, f"Missing {package_spec.NAME} in image {provider.image}") from None
    check_placement(spec, provider.provider_id, provider.image, provider.api)
    check_service(spec, provider.provider_id, provider.service, provider.config)
    return spec


def _empty(places: Layout) -> None:
    for folder in (places.metadata, places.packages):
        if folder.exists():
            shutil.rmtree(folder)
    places.manifest.unlink(missing_ok=True)


def _write(
    new_record: Record,
    provider: request.Provider,
    places: Layout,
    others: Mapping[str, Record],
    staged: Path,
    moves: list[str],
) -> None:
    own = places.metadata / new_record.provider_id
    spec = (places.provider / layout.SPEC_FILE).read_bytes()
    stage = staged.parent
    placement.write(own / layout.RECORD_FILE, record.text(new_record).encode(), stage)
    placement.move(staged, places.packages, moves)
    placement.write(own / layout.SPEC_FILE, spec, stage)
    placement.write(own / layout.CRD_FILE, yaml_file.dump(crd_config(provider)).encode(), stage)
    all_records = sorted([*others.values(), new_record], key=lambda item: (item.order, item.provider_id))
    placement.write(places.manifest, record.manifest(all_records).encode(), stage)
