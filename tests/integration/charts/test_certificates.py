"""The webhook's certificate from a Secret that others maintain, with the permissions that the chart grants."""

from __future__ import annotations

from typing import Final

import pytest

from kubefoundry_core.webhook_configurations import CONFIGURATION, VALIDATING
from kubefoundry_local.suite import NAMESPACE, Suite
from kubefoundry_sdk._api.kinds import SECRETS, Object
from kubefoundry_sdk._cluster.client import Client
from support.admission import until_refused_by_webhook
from support.helm import CHART, OLDEST, Helm
from support.issued_certificates import issued, secret_data
from support.waiting import until

pytestmark = pytest.mark.integration

HOSTS: Final = (f"kubefoundry-core.{NAMESPACE}.svc", "127.0.0.1")
NAME: Final = "platform-tls"


def secret() -> Object:
    """Return a Secret with a new authority, an intermediate authority, and a leaf."""
    root = issued("root")
    leaf = issued("leaf", issued("intermediate", root), HOSTS)
    meta = {"name": NAME, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": secret_data(root, leaf)}


async def test_existing_secret_is_served_and_never_written(
    fresh: Suite, api: Client, namespace: str, helm: Helm
) -> None:
    settings = ["core.certificate.source=secret", f"core.certificate.secretName={NAME}"]
    objects = helm.rendered(CHART, "--set", ",".join(settings), namespace=NAMESPACE)
    documents = [obj for obj in objects if obj["metadata"]["name"] == "kubefoundry-core"]
    core = fresh.install("core", documents=documents)
    first = await api.create(SECRETS, secret(), manager="administrator")

    core.start()
    core.wait_ready()
    await until_refused_by_webhook(api, namespace)
    bundle = bundle_of(await api.get(VALIDATING, CONFIGURATION))
    second = await api.replace(SECRETS, {**first, "data": secret()["data"]}, manager="administrator")
    await until(
        api, VALIDATING, CONFIGURATION, None, lambda obj: obj is not None and bundle_of(obj) != bundle
    )
    await until_refused_by_webhook(api, namespace)

    listed = {obj["metadata"]["name"]: obj for obj in (await api.list(SECRETS, NAMESPACE))[0]}
    assert listed[NAME]["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]
    assert list(listed) == [NAME]


def bundle_of(configuration: Object) -> str:
    return str(configuration["webhooks"][0]["clientConfig"]["caBundle"])


def test_cert_manager_writes_the_secret_that_core_reads(helm: Helm) -> None:
    settings = "core.certificate.source=cert-manager,core.certificate.issuer.name=ca"

    objects = helm.rendered(CHART, "--set", settings, namespace="ml-platform")

    [certificate] = [obj for obj in objects if obj["kind"] == "Certificate"]
    [core] = [
        obj for obj in objects if (obj["kind"], obj["metadata"]["name"]) == ("Deployment", "kubefoundry-core")
    ]
    [container] = core["spec"]["template"]["spec"]["containers"]
    [role] = [
        obj for obj in objects if (obj["kind"], obj["metadata"]["name"]) == ("Role", "kubefoundry-core")
    ]
    name = certificate["spec"]["secretName"]
    assert certificate["spec"]["dnsNames"] == [
        "kubefoundry-core.ml-platform.svc",
        "kubefoundry-conversion.ml-platform.svc",
    ]
    assert certificate["spec"]["issuerRef"] == {"name": "ca", "kind": "Issuer", "group": "cert-manager.io"}
    assert f"--webhook-secret={name}" in container["args"]
    assert [rule for rule in role["rules"] if rule["resources"] == ["secrets"]] == [
        {
            "apiGroups": [""],
            "resources": ["secrets"],
            "resourceNames": [name],
            "verbs": ["get", "list", "watch"],
        }
    ]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("core.certificate.source=secret", "set core.certificate.secretName"),
        ("core.certificate.source=cert-manager", "set core.certificate.issuer.name"),
        ("core.certificate.secretName=x", "set core.certificate.source to secret, or remove secretName"),
        (
            "core.certificate.source=cert-manager,core.certificate.secretName=x",
            "set core.certificate.source to secret, or remove secretName",
        ),
        (
            "core.certificate.issuer.name=x",
            "set core.certificate.source to cert-manager, or remove issuer.name",
        ),
    ],
)
def test_inconsistent_certificate_values_are_refused(helm: Helm, settings: str, message: str) -> None:
    done = helm("template", "x", str(CHART), *OLDEST, "--set", settings, check=False)

    assert (done.returncode, message in done.stderr) == (1, True), done.stderr
