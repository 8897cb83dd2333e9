"""Check a process on a local control plane or in a running cluster."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from kubefoundry_conformance.cases import Cases, Unusable
from kubefoundry_conformance.check import Check, Result, run
from kubefoundry_conformance.cluster.checks import PROVIDER, SELECTOR
from kubefoundry_conformance.cluster.local import local
from kubefoundry_conformance.cluster.rig import Rig
from kubefoundry_conformance.cluster.running import running
from kubefoundry_local.control_plane import CannotRun
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Kind, Object
from kubefoundry_sdk._provider.upstream_kind import UpstreamKind


def check_process(
    manifest: Sequence[Object],
    crds: Sequence[Object],
    upstream: UpstreamKind | None,
    cases: Cases,
    command: Sequence[str],
    kubeconfig: Path | None = None,
    log: Path | None = None,
) -> tuple[str, list[Result]]:
    """Check the process of a provider.

    Args:
        manifest: The documents that install the provider.
        crds: Documents with the upstream CRD, empty for a kind of Kubernetes.
        upstream: The upstream kind, None if it is read from `crds`.
        cases: The author's cases.
        command: Replaces the command of the manifest; empty to keep it.
        kubeconfig: Selects a running cluster; None starts a control plane.
        log: A file that gets the log of the process.

    Returns:
        The provider's name, and the results.

    Raises:
        Unusable: The input cannot be used, or the control plane cannot be started.
    """
    crd, kind = _kind(crds, upstream)

    def build_rig(folder: Path) -> AbstractContextManager[Rig]:
        if kubeconfig is not None:
            return running(kubeconfig, manifest, crd, kind, cases, command, folder)
        return local(manifest, crd, kind, cases, command, folder)

    rig, results = _run_checks(build_rig, PROVIDER, "control plane" if kubeconfig is None else "cluster", log)
    return rig.provider, results


def check_selector(
    manifest: Sequence[Object], command: Sequence[str], providers: Sequence[str], log: Path | None = None
) -> tuple[str, list[Result]]:
    """Check the process of a selector on a local control plane.

    Args:
        manifest: The documents that install the selector.
        command: Replaces the command of the manifest; empty to keep it.
        providers: Names of providers that the checks register.
        log: A file that gets the log of the process.

    Returns:
        The selector's ServiceAccount, and the results.

    Raises:
        Unusable: The input cannot be used, or the control plane cannot be started.
    """
    no_cases = Cases(specs={"none": {}})

    def build_rig(folder: Path) -> AbstractContextManager[Rig]:
        return local(manifest, None, MODEL_DEPLOYMENTS, no_cases, command, folder, providers)

    rig, results = _run_checks(build_rig, SELECTOR, "selector", log)
    return rig.account, results


def _run_checks(
    build_rig: Callable[[Path], AbstractContextManager[Rig]],
    checks: Sequence[Check[Rig]],
    mode: str,
    log: Path | None,
) -> tuple[Rig, list[Result]]:
    """Run checks on a new rig. `log` gets the log of the process even if it does not become ready."""
    with tempfile.TemporaryDirectory(prefix="kubefoundry-conformance-") as folder:
        try:
            with build_rig(Path(folder)) as rig:
                try:
                    rig.subject.start()
                    rig.subject.wait_ready()
                    return rig, [run(check, rig, mode) for check in checks]
                finally:
                    if log is not None:
                        shutil.copyfile(rig.subject.log, log)
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
