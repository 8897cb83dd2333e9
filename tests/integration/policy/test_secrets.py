"""Authors of models name only Secrets that they may get, and ServiceAccounts that they may act as."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from kubefoundry_direct.overrides import Overrides as Direct
from kubefoundry_dynamo.overrides import Overrides as Dynamo
from kubefoundry_kaito.overrides import Overrides as Kaito
from kubefoundry_kuberay.overrides import Overrides as KubeRay
from kubefoundry_local.control_plane import ROOT
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU, model_deployment
from support.users import changed_refusal, new_user, refusal, until_permitted, until_refused, user_name

pytestmark = [pytest.mark.integration, pytest.mark.needs_kubernetes("1.30", "ValidatingAdmissionPolicy")]

NAMESPACE = "secrets"
READABLE = [f"mine-{number}" for number in range(9)]
AUTHOR = user_name(NAMESPACE, "author")

FIELDS: dict[str, dict[str, Any]] = {
    "env": {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "NAME", "key": "k"}}}]},
    "token": {"secrets": {"huggingFaceToken": "NAME"}},
    "volume": {"podTemplate": {"spec": {"volumes": [{"name": "v", "secret": {"secretName": "NAME"}}]}}},
    "pull secret": {"podTemplate": {"spec": {"imagePullSecrets": [{"name": "NAME"}]}}},
    "KubeRay's head": {
        "provider": {"name": "kuberay", "overrides": {"head": {"imagePullSecrets": ["NAME"]}}}
    },
    "direct's pull secret": {"provider": {"name": "direct", "overrides": {"imagePullSecrets": ["NAME"]}}},
}
"""Fields of a spec that name a Secret."""


PROVIDERS: dict[str, type[BaseModel]] = {
    "direct": Direct,
    "dynamo": Dynamo,
    "kaito": Kaito,
    "kuberay": KubeRay,
}


def secret_fields(model: type[BaseModel]) -> list[str]:
    """Return the paths of the fields whose names contain "secret"."""
    paths = []
    for field in model.model_fields.values():
        name = field.alias or ""
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            paths += [f"{name}.{path}" for path in secret_fields(field.annotation)]
        elif "secret" in name.lower():
            paths.append(name)
    return paths


def leaf(overrides: dict[str, Any]) -> str:
    """Return the path of the only field of overrides."""
    [(name, value)] = overrides.items()
    return f"{name}.{leaf(value)}" if isinstance(value, dict) else name


def with_secret(field: str, name: str) -> Object:
    spec = json.loads(json.dumps(FIELDS[field]).replace("NAME", name))
    return model_deployment("m", NAMESPACE, {**GPU, **spec})


def with_env(*names: str) -> dict[str, Any]:
    """Return a spec that reads variables from these Secrets."""
    return {
        **GPU,
        "env": [
            {"name": f"V{number}", "valueFrom": {"secretKeyRef": {"name": name, "key": "k"}}}
            for number, name in enumerate(names)
        ],
    }


@pytest.fixture(scope="module")
def author(suite: Suite, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Kubeconfig of a user who may edit ModelDeployments, get some Secrets, and act as one ServiceAccount."""
    plane = suite.plane
    plane.kubectl("create", "namespace", NAMESPACE)
    kubeconfig = new_user(plane, NAMESPACE, "author", tmp_path_factory.mktemp("author"))
    account = f"--serviceaccount={NAMESPACE}:author"
    within = ("-n", NAMESPACE)
    plane.kubectl("create", "rolebinding", "models", "--clusterrole=kubefoundry-edit", account, *within)
    names = [f"--resource-name={name}" for name in READABLE]
    plane.kubectl("create", "role", "mine", "--verb=get", "--resource=secrets", *names, *within)
    plane.kubectl("create", "rolebinding", "mine", "--role=mine", account, *within)
    plane.kubectl(
        *("create", "role", "own-account", "--verb=impersonate", "--resource=serviceaccounts"),
        *("--resource-name=own", *within),
    )
    plane.kubectl("create", "rolebinding", "own-account", "--role=own-account", account, *within)
    use = {"apiGroups": ["kubefoundry.ai"], "resources": ["inferenceproviderconfigs"], "verbs": ["use"]}
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "use-all"},
        "rules": [use],
    }
    plane.kubectl("apply", "-f", "-", input=json.dumps(role))
    plane.kubectl("create", "rolebinding", "use", "--clusterrole=use-all", account, *within)
    plane.kubectl("apply", "-k", str(ROOT / "manifests" / "secret-policy"))
    for verb, resource in (
        ("create", MODEL_DEPLOYMENTS.crd),
        ("get", "secrets/mine-0"),
        ("impersonate", "serviceaccounts/own"),
        ("use", "inferenceproviderconfigs.kubefoundry.ai/kuberay"),
    ):
        until_permitted(plane, AUTHOR, verb, resource, NAMESPACE)
    return kubeconfig


@pytest.fixture
async def enforced(author: Path) -> None:
    await until_refused(author, MODEL_DEPLOYMENTS, with_secret("token", "secret"))


@pytest.mark.parametrize("field", FIELDS)
async def test_secret_of_others_is_refused(author: Path, enforced: None, field: str) -> None:
    assert await refusal(author, MODEL_DEPLOYMENTS, with_secret(field, "mine-0")) == ""

    words = await refusal(author, MODEL_DEPLOYMENTS, with_secret(field, "secret"))

    assert words.endswith(
        f"user '{AUTHOR}' may not name Secret 'secret' in a ModelDeployment of namespace 'secrets': the permission "
        "'get' on it is missing. Ask an administrator for it, or remove the Secret from the spec"
    )


def test_each_override_that_names_a_secret_is_tested() -> None:
    found = {(name, path) for name, model in PROVIDERS.items() for path in secret_fields(model)}

    tested = {
        (spec["provider"]["name"], leaf(spec["provider"]["overrides"]))
        for spec in FIELDS.values()
        if "provider" in spec
    }
    assert found == tested == {("direct", "imagePullSecrets"), ("kuberay", "head.imagePullSecrets")}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (READABLE[:8], ""),
        ([*READABLE[:8], *READABLE[:8]], ""),
        ([*READABLE[:7], "x"], "may not name Secret 'x' in"),
        (["x", *READABLE[:5], "y"], "may not name Secret 'x' in"),
        (READABLE, "may not name more than 8 Secrets in"),
        ([], ""),
    ],
    ids=["eight", "eight twice", "last", "two", "nine", "none"],
)
async def test_each_of_several_secrets_is_checked(
    author: Path, enforced: None, names: list[str], expected: str
) -> None:
    words = await refusal(author, MODEL_DEPLOYMENTS, model_deployment("m", NAMESPACE, with_env(*names)))

    assert (expected in words) if expected else words == ""


async def test_user_who_reads_all_secrets_names_any(api: Client, enforced: None) -> None:
    names = [f"other-{number}" for number in range(200)]

    stored = await api.create(
        MODEL_DEPLOYMENTS, model_deployment("m", NAMESPACE, with_env(*names)), manager="test", dry_run=True
    )

    assert len(stored["spec"]["env"]) == 200


@pytest.mark.parametrize(("account", "is_refused"), [("own", False), ("admin", True)])
async def test_service_account_of_others_is_refused(
    author: Path, enforced: None, account: str, is_refused: bool
) -> None:
    spec = {**GPU, "podTemplate": {"spec": {"serviceAccountName": account}}}

    words = await refusal(author, MODEL_DEPLOYMENTS, model_deployment("m", NAMESPACE, spec))

    assert (f"may not name ServiceAccount '{account}'" in words) == is_refused


async def test_new_image_with_secret_of_others_is_refused(api: Client, author: Path, enforced: None) -> None:
    stored = await api.create(
        MODEL_DEPLOYMENTS, model_deployment("others", NAMESPACE, with_env("secret")), manager="test"
    )

    image = {"op": "add", "path": "/spec/image", "value": "example.com/thief:1"}
    refused = await changed_refusal(author, MODEL_DEPLOYMENTS, stored, image)
    label = {"op": "add", "path": "/metadata/labels", "value": {"team": "a"}}
    unchanged = await changed_refusal(author, MODEL_DEPLOYMENTS, stored, label)

    assert "may not name Secret 'secret'" in refused
    assert unchanged == ""
