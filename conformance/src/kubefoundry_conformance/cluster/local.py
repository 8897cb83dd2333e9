"""A local control plane with core and the subject."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Final

from kubefoundry_conformance.cases import Cases, Unusable
from kubefoundry_conformance.cluster import manifest as manifests
from kubefoundry_conformance.cluster.rig import Rig
from kubefoundry_conformance.cluster.settings import MANAGER, SHORT
from kubefoundry_local.control_plane import BUILD, ControlPlane, own_control_plane
from kubefoundry_local.suite import NAMESPACE, Suite
from kubefoundry_sdk._api.kinds import NAMESPACES, Kind, Object
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client

PLACES: Final = "conformance"
"""The namespace of the checks."""

Planes = Callable[[Path], AbstractContextManager[ControlPlane]]


@contextmanager
def own_plane(folder: Path) -> Iterator[ControlPlane]:
    """Start a control plane with KubeFoundry's namespace, CRDs and user roles. The folder gets its data."""
    with own_control_plane(folder / "plane") as plane:
        Suite(plane, folder / "suite").install_ground()
        yield plane


_planes: Planes = own_plane


def planes_from(other: Planes) -> None:
    """Replace the source of the control planes of `local`. Tests keep control planes from one run to the next."""
    global _planes
    _planes = other


@contextmanager
def local(
    manifest: Sequence[Object],
    crd: Object | None,
    kind: Kind,
    cases: Cases,
    command: Sequence[str],
    folder: Path,
    providers: Sequence[str] = (),
) -> Iterator[Rig]:
    """Yield a rig on a new control plane, without the upstream CRD.

    Args:
        manifest: The documents that install the subject.
        crd: The upstream CRD, None for a kind of Kubernetes.
        kind: The upstream kind in its stored version.
        cases: The author's cases.
        command: Replaces the command of the manifest; empty to keep it.
        folder: An empty folder for data and logs.
        providers: The providers that the checks of a selector register.

    Raises:
        Unusable: There is no checkout, or the manifest cannot be used.
        CannotRun: The control plane cannot be started.
    """
    if not BUILD.is_file():
        raise Unusable(
            "the kit's own control plane is built from a checkout of KubeFoundry: run it from there, or name a "
            "running cluster with --kubeconfig"
        )
    account = manifests.account_of(manifests.checked(manifest, command))
    provider = account.removeprefix("kubefoundry-provider-")
    with _planes(folder) as plane, asyncio.Runner() as runner:
        suite = Suite(plane, folder / "suite")
        suite.start("core")
        subject = suite.install(provider, environment=SHORT, documents=manifest)
        if command:
            subject.command = [*command, *manifests.arguments_of(manifest)]
        api = Client(credentials.from_kubeconfig(str(plane.kubeconfig)), user_agent=MANAGER)
        runner.run(api.__aenter__())
        try:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACES}}
            runner.run(api.create(NAMESPACES, body, manager=MANAGER))
            yield Rig(
                api,
                provider,
                subject,
                account,
                NAMESPACE,
                PLACES,
                kind,
                crd,
                cases,
                runner,
                [*manifests.cluster_rules(manifest), *manifests.namespace_rules(manifest)],
                suite,
                providers,
            )
        finally:
            runner.run(api.__aexit__(None, None, None))
            # The suite kills a subject that does not end. PRO-2 reports it, so it must not cost the report.
            with suppress(subprocess.TimeoutExpired):
                suite.stop()
