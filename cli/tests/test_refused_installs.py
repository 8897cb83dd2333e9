"""Refused objects of a manifest, by the typed details of the API server's answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from support.fake_server import Answers, serving

BINDING = """
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: b, namespace: team}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}
"""
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n"
RESOURCES = {
    "/apis/rbac.authorization.k8s.io/v1": [
        {"name": "rolebindings", "kind": "RoleBinding", "namespaced": True},
        {"name": "roles", "kind": "Role", "namespaced": True},
    ],
    "/api/v1": [{"name": "namespaces", "kind": "Namespace", "namespaced": False}],
}


class Refusing(Answers):
    """A cluster without the objects of the manifest. It refuses the RoleBinding because something is missing."""

    def __init__(self, kind: str, name: str, message: str) -> None:
        super().__init__()
        self.missing, self.message = {"kind": kind, "name": name}, message

    def to(self, path: str) -> tuple[int, Any]:
        if path in RESOURCES:
            return 200, {"resources": RESOURCES[path]}
        if "fieldManager=" not in path:
            return super().to(path)
        if "/rolebindings/" not in path:
            return 200, {"metadata": {"name": "team"}}
        status = {"kind": "Status", "code": 404, "reason": "NotFound", "message": self.message}
        return 404, {**status, "details": self.missing}


@pytest.fixture
def install(call: Callable[..., Result], tmp_path: Path) -> Callable[..., Result]:
    """Try to install a manifest: answers, text -> result."""

    def run(answers: Answers, manifest: str) -> Result:
        file = tmp_path / "provider.yaml"
        file.write_text(manifest)
        with serving(answers, tmp_path) as kubeconfig:
            options = ("--dry-run", "--kubeconfig", str(kubeconfig))
            return call("provider", "install", str(file), *options)

    return run


def test_missing_namespace_is_named(install: Callable[..., Result]) -> None:
    done = install(Refusing("namespaces", "team", "no such thing"), BINDING)

    expected = "cannot apply RoleBinding team/b: there is no namespace team; create it first"
    assert (done.exit_code, expected in done.stderr) == (1, True), done.output


def test_text_about_a_namespace_is_no_missing_namespace(install: Callable[..., Result]) -> None:
    message = 'configmaps "x" not found; the policy of namespaces "team" reads it'

    done = install(Refusing("configmaps", "x", message), BINDING)

    assert (done.exit_code, message in done.stderr) == (1, True), done.output
    assert "there is no namespace" not in done.stderr


def test_object_whose_namespace_is_in_the_manifest_is_planned(install: Callable[..., Result]) -> None:
    done = install(Refusing("namespaces", "team", "no such thing"), f"{NAMESPACE}---{BINDING}")

    assert (done.exit_code, "will create  RoleBinding team/b" in done.stdout) == (0, True), done.output


def test_other_missing_object_refuses_in_spite_of_the_namespace(install: Callable[..., Result]) -> None:
    done = install(Refusing("configmaps", "x", 'configmaps "x" not found'), f"{NAMESPACE}---{BINDING}")

    assert (done.exit_code, 'configmaps "x" not found' in done.stderr) == (1, True), done.output


@pytest.mark.parametrize("resource", ["rolebindings", "role", "roles"])
def test_binding_whose_role_is_in_the_manifest_is_planned(
    install: Callable[..., Result], resource: str
) -> None:
    # The name is the role's. The resource depends on the release of Kubernetes.
    refusing = Refusing(resource, "r", f'{resource}.rbac.authorization.k8s.io "r" not found')
    role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r, namespace: team}\n"

    done = install(refusing, f"{role}---{BINDING}")
    alone = install(refusing, BINDING)

    assert (done.exit_code, "will create  RoleBinding team/b" in done.stdout) == (0, True), done.output
    assert (alone.exit_code, '"r" not found' in alone.stderr) == (1, True), alone.output
