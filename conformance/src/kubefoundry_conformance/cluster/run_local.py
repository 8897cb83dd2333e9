"""Checks of a provider's process on a control plane of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kubefoundry_conformance.cases import Cases, Unusable
from kubefoundry_conformance.check import Result, run
from kubefoundry_conformance.cluster.checks import PROVIDER, SELECTOR
from kubefoundry_conformance.cluster.rig import local
from kubefoundry_local.control_plane import CannotRun
from kubefoundry_sdk.api.kinds import MODEL_DEPLOYMENTS, Kind, Object
from kubefoundry_sdk.provider.contract import UpstreamKind


def check_process(
    manifest: Sequence[Object],
    crds: Sequence[Object],
    upstream: UpstreamKind | None,
    cases: Cases,
    command: Sequence[str],
) -> tuple[str, list[Result]]:
    """The provider's name, and all results. Raises Unusable."""
    crd, kind = _kind(crds, upstream)
    with tempfile.TemporaryDirectory(prefix="kubefoundry-conformance-") as folder:
        try:
            with local(manifest, crd, kind, cases, command, Path(folder)) as rig:
                rig.subject.start()
                rig.subject.wait_ready()
                return rig.provider, [run(check, rig, "control plane") for check in PROVIDER]
        except CannotRun as error:
            raise Unusable(str(error)) from error


def check_selector(
    manifest: Sequence[Object], command: Sequence[str], providers: Sequence[str]
) -> tuple[str, list[Result]]:
    """The selector's account, and all results. Raises Unusable."""
    nothing = Cases(specs={"none": {}})
    with tempfile.TemporaryDirectory(prefix="kubefoundry-conformance-") as folder:
        try:
            with local(manifest, None, MODEL_DEPLOYMENTS, nothing, command, Path(folder), providers) as rig:
                rig.subject.start()
                rig.subject.wait_ready()
                return rig.account, [run(check, rig, "selector") for check in SELECTOR]
        except CannotRun as error:
            raise Unusable(str(error)) from error


def _kind(crds: Sequence[Object], upstream: UpstreamKind | None) -> tuple[Object | None, Kind]:
    if upstream is not None and upstream.version is not None:
        return None, upstream.served(f"{upstream.group}/{upstream.version}")
    for document in crds:
        if document.get("kind") != "CustomResourceDefinition":
            continue
        spec: Any = document["spec"]
        if upstream is not None and document["metadata"]["name"] != upstream.crd:
            continue
        stored = next(str(version["name"]) for version in spec["versions"] if version["storage"])
        return document, Kind(spec["group"], stored, spec["names"]["plural"], spec["names"]["kind"])
    raise Unusable("no file that was given holds the upstream CustomResourceDefinition")
