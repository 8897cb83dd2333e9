"""The name of the caller who may not change the owner of an object."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kubefoundry_cli.cluster import Session
from kubefoundry_cli.owner_permission import failure
from kubefoundry_sdk._api.kinds import DEPLOYMENTS
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from support.fake_server import Answers, serving

DEMAND = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on"
REFUSED = (
    'selfsubjectreviews.authentication.k8s.io is forbidden: User "vera" cannot create resource "selfsubjectreviews" '
    'in API group "authentication.k8s.io" at the cluster scope'
)


class Reviewer(Answers):
    """A server that permits nothing, with one answer to the question who the caller is."""

    def __init__(self, code: int, body: Any) -> None:
        super().__init__()
        self.answer = code, body

    def to(self, path: str) -> tuple[int, Any]:
        if path.endswith("selfsubjectaccessreviews"):
            return 201, {"status": {"allowed": False}}
        return self.answer if path.endswith("selfsubjectreviews") else super().to(path)


@pytest.mark.parametrize(
    ("code", "body", "user"),
    [
        pytest.param(201, {"status": {"userInfo": {"username": "vera"}}}, "vera", id="1.28"),
        pytest.param(
            403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": REFUSED}, "vera", id="1.26"
        ),
        pytest.param(404, {"kind": "Status", "code": 404, "reason": "NotFound"}, "USER", id="not served"),
    ],
)
async def test_missing_permission_names_the_caller(tmp_path: Path, code: int, body: Any, user: str) -> None:
    with serving(Reviewer(code, body), tmp_path) as kubeconfig:
        async with Client(credentials.from_kubeconfig(str(kubeconfig)), user_agent="test") as client:
            failed = await failure(
                Session(client, "t"), ApiError(403, "Forbidden", DEMAND), DEPLOYMENTS, "adopt it"
            )

    assert failed.message.startswith("cannot adopt it: you may not update modeldeployments/finalizers")
    assert failed.message.endswith(f" --clusterrole=edit --user={user}")
