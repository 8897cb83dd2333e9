"""Tests that OpenShift's role for any user id is bound only if an administrator asks for it."""

from __future__ import annotations

import pytest
import yaml

from kubefoundry_llamastack.names import ANYUID_ROLE, LLSD, ROLE_BINDINGS
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._cluster.client import Client
from support.llamastack import deployment, llsd

pytestmark = pytest.mark.integration


async def test_anyuid_is_not_bound_when_only_role_exists(stack: Suite, api: Client, namespace: str) -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": ANYUID_ROLE},
        "rules": [],
    }
    stack.plane.kubectl("apply", "-f", "-", input=yaml.safe_dump(role))
    try:
        await api.create(LLSD, llsd("m", namespace), manager="user")
        await deployment(api, "m", namespace)

        # A role is given before there are pods that could use it.
        bindings, _ = await api.list(ROLE_BINDINGS, namespace)
        assert bindings == []
    finally:
        stack.plane.kubectl("delete", "clusterrole", ANYUID_ROLE)


def test_anyuid_binding_is_forbidden_without_permission(stack: Suite, namespace: str) -> None:
    account = "--as=system:serviceaccount:kubefoundry-system:kubefoundry-llamastack"
    done = stack.plane.kubectl(
        "auth", "can-i", "bind", f"clusterroles/{ANYUID_ROLE}", account, "-n", namespace, check=False
    )
    assert done.stdout.strip() == "no"
