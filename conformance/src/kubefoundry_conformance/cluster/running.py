"""A rig in a cluster that others use.

The kit works in a namespace of its own, and removes its objects at the end. Core must run in the cluster. The subject
is a process on this machine with the token of a ServiceAccount in the kit's namespace. It has the reading permissions
of its manifest. It may write only in that namespace and to its own InferenceProviderConfig, which selects nothing.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from kubefoundry_conformance.cases import Cases, Unusable
from kubefoundry_conformance.cluster import manifest as manifests
from kubefoundry_conformance.cluster.removal import remove
from kubefoundry_conformance.cluster.rig import Rig
from kubefoundry_conformance.cluster.settings import MANAGER, MARK, SHORT
from kubefoundry_conformance.cluster.waiting import NotSeen, condition, until
from kubefoundry_local.suite import account_files, process_of
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import (
    CRDS,
    MODEL_DEPLOYMENTS,
    NAMESPACES,
    PROVIDER_CONFIGS,
    Kind,
    Object,
)
from kubefoundry_sdk._api.reasons import VALIDATED
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.credentials import Credentials, NoCredentials
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable

RBAC: Final = "rbac.authorization.k8s.io"
ACCOUNTS: Final = Kind("", "v1", "serviceaccounts", "ServiceAccount")
ROLES: Final = Kind(RBAC, "v1", "roles", "Role")
ROLE_BINDINGS: Final = Kind(RBAC, "v1", "rolebindings", "RoleBinding")
CLUSTER_ROLES: Final = Kind(RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTER_ROLE_BINDINGS: Final = Kind(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
DAY: Final = 86400
"""Lifetime of the subject's token, in seconds."""

NO_SELECTION: Final = [{"condition": "false", "priority": 0}]
"""Selection rules of the subject, which select it for no ModelDeployment."""


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
    """Yield a rig in a running cluster, without the upstream CRD.

    Args:
        kubeconfig: Selects the cluster by its current context.
        manifest: The documents that install the subject.
        crd: The upstream CRD, None for a kind of Kubernetes.
        kind: The upstream kind in its stored version.
        cases: The author's cases.
        command: Replaces the command of the manifest; empty to keep it.
        folder: An empty folder for credentials and logs.

    Raises:
        Unusable: The checks cannot run in this cluster. Nothing was created.
    """
    account = manifests.account_of(manifests.checked(manifest, command))
    provider = account.removeprefix("kubefoundry-provider-")
    if crd is None:
        raise Unusable(
            f"the cluster's own controllers act on every {kind.kind}, and the checks would start pods: leave out "
            "--kubeconfig, the local control plane has no such controllers"
        )
    admin, authority = read_kubeconfig(kubeconfig)
    namespace = f"{MANAGER}-{uuid.uuid4().hex[:8]}"
    with asyncio.Runner() as runner:
        api = Client(admin, user_agent=MANAGER)
        runner.run(api.__aenter__())
        try:
            runner.run(_check_unused(api, provider, kind))
            print(_announcement(admin.server, namespace, provider, kind), file=sys.stderr)
            folder.mkdir(parents=True, exist_ok=True)
            subject = process_of(provider, manifests.deployment_of(manifest), folder, {})
            if command:
                subject.command = [*command, *manifests.arguments_of(manifest)]
            rig = Rig(api, provider, subject, account, namespace, namespace, kind, crd, cases, runner)
            try:
                token = runner.run(_install(rig, manifest))
                subject.environment |= {
                    **account_files(folder, namespace, token, authority, admin.server),
                    **SHORT,
                }
                yield rig
            finally:
                for left in runner.run(remove(rig)):
                    print(f"kubefoundry-conformance: {left}", file=sys.stderr)
        except (ApiError, Unreachable) as error:
            raise Unusable(f"{admin.server}: {error}") from error
        finally:
            runner.run(api.__aexit__(None, None, None))


def _announcement(server: str, namespace: str, provider: str, kind: Kind) -> str:
    objects = (
        f"namespace, ClusterRole and ClusterRoleBinding {namespace}",
        f"InferenceProviderConfig {provider}",
        f"CRD {kind.crd}",
    )
    return f"kubefoundry-conformance: makes in {server}, and removes at the end: {', '.join(objects)}"


def read_kubeconfig(kubeconfig: Path) -> tuple[Credentials, bytes]:
    """Read an administrator's kubeconfig once.

    Returns:
        The credentials, and the certificate authorities of the API server (PEM).

    Raises:
        Unusable: The kubeconfig cannot be used, or a pod could not reach its API server.
    """
    try:
        admin = credentials.from_kubeconfig(str(kubeconfig))
    except NoCredentials as error:
        raise Unusable(str(error)) from error
    # The authorities come from the TLS context: another read could yield others, and would run an exec plugin again.
    tls = admin.tls
    verified = tls is not None and tls.verify_mode == ssl.CERT_REQUIRED
    certificates = tls.get_ca_certs(binary_form=True) if tls is not None and verified else []
    if admin.proxy or admin.server.count("/") != 2 or not certificates:
        raise Unusable(
            f"{kubeconfig}: the subject reaches the API server as a pod does: give a kubeconfig with an https server "
            "without a path or proxy, and its certificate-authority"
        )
    return admin, "".join(map(ssl.DER_cert_to_PEM_cert, certificates)).encode()


async def _check_unused(api: Client, provider: str, kind: Kind) -> None:
    """Raise Unusable if the cluster has an object that the checks would touch."""
    try:
        deployments, _ = await api.list(MODEL_DEPLOYMENTS)
        configs, _ = await api.list(PROVIDER_CONFIGS)
    except ApiError as error:
        if not error.not_found:
            raise
        raise Unusable(f"KubeFoundry is not installed in {api.server}: install it first") from error
    crds, _ = await api.list(CRDS, selector={"fieldSelector": f"metadata.name={kind.crd}"})
    own_configs = [config for config in configs if config["metadata"]["name"] == provider]
    _check_missing(f"InferenceProviderConfig {provider}", own_configs)
    _check_missing(f"CRD {kind.crd}", crds)
    for deployment in deployments:
        if _is_for(deployment, provider):
            meta = deployment["metadata"]
            raise Unusable(
                f"ModelDeployment {meta['namespace']}/{meta['name']} is for provider {provider}: "
                "the subject would serve it"
            )


def _check_missing(name: str, objects: Sequence[Object]) -> None:
    """Raise Unusable if there is an object of that name."""
    if not objects:
        return
    if run := (objects[0]["metadata"].get("labels") or {}).get(MARK):
        raise Unusable(
            f"{name} is another run's, or left over from one: when none runs, kubectl delete "
            f"inferenceproviderconfigs,crds,clusterroles,clusterrolebindings,namespaces -l {MARK}={run}"
        )
    raise Unusable(f"{name} is there already, and is not touched: take a cluster that does not have it")


def _is_for(deployment: Object, provider: str) -> bool:
    """Check whether the ModelDeployment names the provider, or has its finalizer."""
    chosen = ((deployment.get("spec") or {}).get("provider") or {}).get("name")
    finalizers = deployment["metadata"].get("finalizers") or ()
    return chosen == provider or names.provider_finalizer(provider) in finalizers


async def _install(rig: Rig, manifest: Sequence[Object]) -> str:
    """Create namespace, account and permissions of the subject, and return its token.

    Raises:
        ApiError: The API server refuses an object.
        Unusable: Core does not run.
    """
    name = rig.namespace
    await rig.add(NAMESPACES, {"metadata": {"name": name}})
    await rig.add(
        PROVIDER_CONFIGS,
        {
            "apiVersion": names.API_VERSION,
            "kind": names.PROVIDER_CONFIG,
            "metadata": {"name": rig.provider},
            "spec": {"capabilities": {}, "selectionRules": NO_SELECTION},
        },
    )
    await _check_core(rig)
    await _grant(rig, manifest)
    url = f"/api/v1/namespaces/{name}/serviceaccounts/{rig.account}/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    response: Any = await rig.api.send(url, {**request, "spec": {"expirationSeconds": DAY}})
    return str(response["status"]["token"])


async def _grant(rig: Rig, manifest: Sequence[Object]) -> None:
    """Create the subject's account and roles: reading in the cluster, all its permissions in the namespace."""
    name = rig.namespace
    rules = manifests.cluster_rules(manifest)
    own_config = manifests.writing(rules, names.GROUP, names.PROVIDER_CONFIGS, rig.provider)
    meta = {"name": name, "namespace": name}
    account = {"kind": "ServiceAccount", "name": rig.account, "namespace": name}
    await rig.api.create(ACCOUNTS, {"metadata": {"name": rig.account, "namespace": name}}, manager=MANAGER)
    await rig.add(
        CLUSTER_ROLES, {"metadata": {"name": name}, "rules": [*manifests.reading(rules), *own_config]}
    )
    ref = {"apiGroup": RBAC, "name": name}
    await rig.add(
        CLUSTER_ROLE_BINDINGS,
        {"metadata": {"name": name}, "roleRef": {**ref, "kind": "ClusterRole"}, "subjects": [account]},
    )
    # A Role cannot have rules without resources, such as those of URLs.
    namespaced = [rule for rule in (*rules, *manifests.namespace_rules(manifest)) if rule.get("resources")]
    await rig.api.create(ROLES, {"metadata": meta, "rules": namespaced}, manager=MANAGER)
    await rig.api.create(
        ROLE_BINDINGS,
        {"metadata": meta, "roleRef": {**ref, "kind": "Role"}, "subjects": [account]},
        manager=MANAGER,
    )


async def _check_core(rig: Rig) -> None:
    """Raise Unusable if nobody validates a ModelDeployment."""
    place = rig.place()
    await rig.create(place)
    try:
        await until(rig.api, MODEL_DEPLOYMENTS, *place, lambda obj: condition(obj, VALIDATED))
    except NotSeen as error:
        raise Unusable(f"core does not run in {rig.api.server}, and has to: {error}") from error
    await rig.delete(place)
    await until(rig.api, MODEL_DEPLOYMENTS, *place, lambda obj: obj is None)
