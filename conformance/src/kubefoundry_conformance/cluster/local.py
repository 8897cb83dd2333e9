"""A control plane of the kit's own, with core, and the subject as its manifest says."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Final

from kubefoundry_conformance.cases import Cases, Unusable
from kubefoundry_conformance.cluster import manifest as manifests
from kubefoundry_conformance.cluster.rig import MANAGER, SHORT, Rig
from kubefoundry_local.control_plane import BUILD, ControlPlane, own_control_plane
from kubefoundry_local.suite import NAMESPACE, Suite
from kubefoundry_sdk.api.kinds import NAMESPACES, Kind, Object
from kubefoundry_sdk.cluster import credentials
from kubefoundry_sdk.cluster.client import Client

PLACES: Final = "conformance"
"""The namespace of the checks."""

Planes = Callable[[Path], AbstractContextManager[ControlPlane]]


@contextmanager
def own_plane(folder: Path) -> Iterator[ControlPlane]:
    """A new control plane with our namespace, CRDs and user roles, its data in the folder."""
    with own_control_plane(folder / "plane") as plane:
        Suite(plane, folder / "suite").install_ground()
        yield plane


_planes: Planes = own_plane


def planes_from(other: Planes) -> None:
    """Has `local` take its control planes from there from now on: tests keep them from one run to the next."""
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
    """A rig on a control plane of its own; the upstream CRD is not installed yet. Raises Unusable, CannotRun."""
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
            subject.command = [*command, *subject.command[1:]]
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
                [*manifests.everywhere(manifest), *manifests.inside(manifest)],
                suite,
                providers,
            )
        finally:
            runner.run(api.__aexit__(None, None, None))
            # A subject that does not end is killed: a check has said so, and the report is worth more.
            with suppress(subprocess.TimeoutExpired):
                suite.stop()
