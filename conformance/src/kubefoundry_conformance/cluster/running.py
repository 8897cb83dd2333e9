"""A cluster that others use: what the kit makes is in a namespace of its own, and is removed at the end.

Core has to run there. The subject is a process on this machine with the token of a ServiceAccount in that namespace.
It reads what its manifest permits, and writes only in that namespace and its own InferenceProviderConfig, which
selects nothing.
"""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from kubernetes import config
from kubernetes.client import Configuration

from kubefoundry_conformance.cases import Cases, Unusable
from kubefoundry_conformance.cluster import manifest as manifests
from kubefoundry_conformance.cluster.removal import remove
from kubefoundry_conformance.cluster.rig import MANAGER, MARK, SHORT, Rig
from kubefoundry_conformance.cluster.waiting import NotSeen, condition, until
from kubefoundry_local.suite import account_files, process_of
from kubefoundry_sdk.api import names
from kubefoundry_sdk.api.kinds import (
    CRDS,
    MODEL_DEPLOYMENTS,
    NAMESPACES,
    PROVIDER_CONFIGS,
    Kind,
    Object,
)
from kubefoundry_sdk.api.reasons import VALIDATED
from kubefoundry_sdk.cluster import credentials
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.cluster.credentials import NoCredentials
from kubefoundry_sdk.cluster.errors import ApiError, Unreachable

RBAC: Final = "rbac.authorization.k8s.io"
ACCOUNTS: Final = Kind("", "v1", "serviceaccounts", "ServiceAccount")
ROLES: Final = Kind(RBAC, "v1", "roles", "Role")
ROLE_BINDINGS: Final = Kind(RBAC, "v1", "rolebindings", "RoleBinding")
CLUSTER_ROLES: Final = Kind(RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTER_ROLE_BINDINGS: Final = Kind(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
DAY: Final = 86400
"""Seconds for which the subject's token is valid."""

NOTHING: Final = [{"condition": "false", "priority": 0}]
"""Selection rules of the subject: no ModelDeployment of anybody gets it."""


@contextmanager
def running(
    kubeconfig: Path,
    manifest: Sequence[Object],
    crd: Object | None,
    kind: Kind,
    cases: Cases,
    command: Sequence[str],
    folder: Path,
) -> Iterator[Rig]:
    """A rig in a running cluster; the upstream CRD is not installed yet. Raises Unusable before anything is made."""
    account = manifests.account_of(manifests.checked(manifest, command))
    provider = account.removeprefix("kubefoundry-provider-")
    if crd is None:
        raise Unusable(
            f"the cluster's own controllers act on every {kind.kind}, and the checks would start pods: leave out "
            "--kubeconfig, the local control plane has no such controllers"
        )
    who, authority = _credentials(kubeconfig)
    namespace = f"{MANAGER}-{uuid.uuid4().hex[:8]}"
    with asyncio.Runner() as runner:
        api = Client(who, user_agent=MANAGER)
        runner.run(api.__aenter__())
        try:
            runner.run(_free(api, provider, kind))
            print(_announced(who.server, namespace, provider, kind), file=sys.stderr)
            folder.mkdir(parents=True, exist_ok=True)
            subject = process_of(provider, manifests.deployment_of(manifest), folder, {})
            subject.command = [*command, *subject.command[1:]] if command else subject.command
            rig = Rig(api, provider, subject, account, namespace, namespace, kind, crd, cases, runner)
            try:
                token = runner.run(_install(rig, manifest))
                subject.environment |= {
                    **account_files(folder, namespace, token, authority, who.server),
                    **SHORT,
                }
                yield rig
            finally:
                for left in runner.run(remove(rig)):
                    print(f"kubefoundry-conformance: {left}", file=sys.stderr)
        except (ApiError, Unreachable) as error:
            raise Unusable(f"{who.server}: {error}") from error
        finally:
            runner.run(api.__aexit__(None, None, None))


def _announced(server: str, namespace: str, provider: str, kind: Kind) -> str:
    made = (
        f"namespace, ClusterRole and ClusterRoleBinding {namespace}",
        f"InferenceProviderConfig {provider}",
        f"CRD {kind.crd}",
    )
    return f"kubefoundry-conformance: makes in {server}, and removes at the end: {', '.join(made)}"


def _credentials(kubeconfig: Path) -> tuple[credentials.Credentials, bytes]:
    """Of an administrator, and the certificate authority of the API server. Raises Unusable."""
    try:
        who = credentials.from_kubeconfig(str(kubeconfig))
    except NoCredentials as error:
        raise Unusable(str(error)) from error
    settings = Configuration()
    with TemporaryDirectory(prefix="kubeconfig-") as files:
        config.load_kube_config(  # type: ignore[no-untyped-call]
            config_file=str(kubeconfig), client_configuration=settings, temp_file_path=files
        )
        authority = Path(settings.ssl_ca_cert).read_bytes() if settings.ssl_ca_cert else b""
    if who.proxy or who.server.count("/") != 2 or not authority:
        raise Unusable(
            f"{kubeconfig}: the subject reaches the API server as a pod does: give a kubeconfig with an https server "
            "without a path or proxy, and its certificate-authority"
        )
    return who, authority


async def _free(api: Client, provider: str, kind: Kind) -> None:
    """Raises Unusable where something is there that the checks would touch."""
    try:
        deployments, _ = await api.list(MODEL_DEPLOYMENTS)
        configs, _ = await api.list(PROVIDER_CONFIGS)
    except ApiError as error:
        if not error.not_found:
            raise
        raise Unusable(f"KubeFoundry is not installed in {api.server}: install it first") from error
    crds, _ = await api.list(CRDS, selector={"fieldSelector": f"metadata.name={kind.crd}"})
    same = [one for one in configs if one["metadata"]["name"] == provider]
    for what, found in ((f"InferenceProviderConfig {provider}", same), (f"CRD {kind.crd}", crds)):
        if not found:
            continue
        if run := (found[0]["metadata"].get("labels") or {}).get(MARK):
            raise Unusable(
                f"{what} is another run's, or left over from one: when none runs, kubectl delete "
                f"inferenceproviderconfigs,crds,clusterroles,clusterrolebindings,namespaces -l {MARK}={run}"
            )
        raise Unusable(f"{what} is there already, and is not touched: take a cluster that does not have it")
    for one in deployments:
        named = ((one.get("spec") or {}).get("provider") or {}).get("name")
        held = names.provider_finalizer(provider) in (one["metadata"].get("finalizers") or ())
        if named == provider or held:
            where = f"{one['metadata']['namespace']}/{one['metadata']['name']}"
            raise Unusable(f"ModelDeployment {where} is for provider {provider}: the subject would serve it")


async def _install(rig: Rig, manifest: Sequence[Object]) -> str:
    """Namespace, account and permissions of the subject; its token. Raises ApiError; Unusable where core is away."""
    name = rig.namespace
    await rig.add(NAMESPACES, {"metadata": {"name": name}})
    await rig.add(
        PROVIDER_CONFIGS,
        {
            "apiVersion": names.API_VERSION,
            "kind": names.PROVIDER_CONFIG,
            "metadata": {"name": rig.provider},
            "spec": {"capabilities": {}, "selectionRules": NOTHING},
        },
    )
    await _core_answers(rig)
    everywhere = manifests.everywhere(manifest)
    own = manifests.writing(everywhere, names.GROUP, names.PROVIDER_CONFIGS, rig.provider)
    wide = [*manifests.reading(everywhere), *own]
    there = {"name": name, "namespace": name}
    account = {"kind": "ServiceAccount", "name": rig.account, "namespace": name}
    await rig.api.create(ACCOUNTS, {"metadata": {"name": rig.account, "namespace": name}}, manager=MANAGER)
    await rig.add(CLUSTER_ROLES, {"metadata": {"name": name}, "rules": wide})
    ref = {"apiGroup": RBAC, "name": name}
    await rig.add(
        CLUSTER_ROLE_BINDINGS,
        {"metadata": {"name": name}, "roleRef": {**ref, "kind": "ClusterRole"}, "subjects": [account]},
    )
    narrow = [rule for rule in (*everywhere, *manifests.inside(manifest)) if rule.get("resources")]
    await rig.api.create(ROLES, {"metadata": there, "rules": narrow}, manager=MANAGER)
    await rig.api.create(
        ROLE_BINDINGS,
        {"metadata": there, "roleRef": {**ref, "kind": "Role"}, "subjects": [account]},
        manager=MANAGER,
    )
    url = f"/api/v1/namespaces/{name}/serviceaccounts/{rig.account}/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    answer: Any = await rig.api.send(url, {**asked, "spec": {"expirationSeconds": DAY}})
    return str(answer["status"]["token"])


async def _core_answers(rig: Rig) -> None:
    """Raises Unusable where nobody validates a ModelDeployment."""
    place = rig.place()
    await rig.create(place)
    try:
        await until(rig.api, MODEL_DEPLOYMENTS, *place, lambda obj: condition(obj, VALIDATED))
    except NotSeen as error:
        raise Unusable(f"core does not run in {rig.api.server}, and has to: {error}") from error
    await rig.delete(place)
    await until(rig.api, MODEL_DEPLOYMENTS, *place, lambda obj: obj is None)
