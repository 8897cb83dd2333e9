"""When a named Secret or ConfigMap is looked up, and how often a missing permission is checked."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from kubefoundry_sdk import Deployment, Object, Rendered, Schema
from kubefoundry_sdk._api.names import REFRESH_ANNOTATION
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._provider.contract import PodDefaults, Provider
from kubefoundry_sdk._provider.health.references import bundle_of
from kubefoundry_sdk.testing import Harness, simulated
from kubefoundry_sdk.testing._server.requests import Answer, Request
from support import things
from support.things import PROVIDER, SPEC, crd

OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
NAMED = {**SPEC, "secrets": {"huggingFaceToken": "token"}}
MINUTE = 60.0


class Cluster(Harness):
    """A cluster in which an administrator decides whether the provider may read Secrets.

    `reviews` and `lookups` have the seconds at which the provider asked for the permission, and for a Secret.
    """

    def __init__(self, *, is_permitted: bool, provider: Provider = PROVIDER) -> None:
        super().__init__(provider, crd(volumes={"type": "array", "items": OPEN}))
        self.is_permitted = is_permitted
        self.failure: Exception | None = None
        self.reviews: list[float] = []
        self.lookups: list[float] = []

    @property
    def time(self) -> float:
        assert self._loop is not None
        return self._loop.time()

    @property
    def reports(self) -> list[str]:
        return [
            event.note for event in self.events if event.reason in ("SecretNotFound", "ConfigMapNotFound")
        ]

    def _asked(self, request: Request) -> None:
        is_review = _is_review(request)
        is_lookup = "/secrets/" in request.path or "/configmaps/company-ca" in request.path
        if is_lookup:
            self.lookups.append(self.time)
        if is_review:
            self.reviews.append(self.time)
        if self.failure and (is_lookup or is_review):
            raise self.failure
        super()._asked(request)

    def _answered(self, request: Request, answer: Answer) -> None:
        if _is_review(request):
            answer.body["status"]["allowed"] = self.is_permitted
        super()._answered(request, answer)


def _is_review(request: Request) -> bool:
    if not request.path.endswith("/selfsubjectaccessreviews"):
        return False
    asked: Any = json.loads(request.body or b"{}")
    return asked["spec"]["resourceAttributes"]["resource"] in ("secrets", "configmaps")


@simulated
async def test_secret_is_looked_up_soon_after_permission() -> None:
    async with (cluster := Cluster(is_permitted=False)):
        await cluster.create(NAMED)
        await cluster.advance(7 * MINUTE + 1)
        assert (cluster.lookups, cluster.reports) == ([], [])

        cluster.is_permitted, granted = True, cluster.time
        await cluster.advance(3 * MINUTE)

        assert cluster.reports == ["Secret 'token' not found in namespace 'default'"]
        assert granted < cluster.lookups[0] <= granted + 3 * MINUTE
        await cluster.advance(60 * MINUTE)
        assert len(cluster.lookups) == 1


@simulated
async def test_missing_permission_is_checked_once_a_minute() -> None:
    async with (cluster := Cluster(is_permitted=False)):
        await cluster.create(NAMED)
        for number in range(60):
            await cluster.annotate({"example.com/number": str(number)})

        assert len(cluster.reviews) == 5
        assert min(after - before for before, after in pairwise(cluster.reviews)) >= MINUTE
        assert cluster.lookups == []


@pytest.mark.parametrize("spec", [SPEC, NAMED], ids=["no Secret", "a Secret"])
@simulated
async def test_serving_model_asks_for_no_permission(spec: dict[str, Any]) -> None:
    async with (cluster := Cluster(is_permitted=False)):
        await cluster.create(spec)
        await cluster.upstream({"ready": 1})
        assert cluster.status["phase"] == "Running"
        before = list(cluster.reviews)
        await cluster.advance(24 * 60 * MINUTE)

        assert cluster.reviews == before
        assert bool(before) is (spec is NAMED)


@pytest.mark.parametrize(
    "failure",
    [
        Unreachable("connection refused"),
        ApiError(500, "InternalError", "etcd is away"),
        ApiError(429, "TooManyRequests", "slow down"),
        ApiError(403, "Forbidden", "not in this namespace"),
    ],
    ids=lambda failure: type(failure).__name__ + str(getattr(failure, "code", "")),
)
@pytest.mark.parametrize("is_permitted", [False, True])
def test_failed_lookup_is_repeated(failure: Exception, is_permitted: bool) -> None:
    @simulated
    async def run() -> None:
        async with (cluster := Cluster(is_permitted=is_permitted)):
            cluster.failure = failure
            await cluster.create(NAMED)
            await cluster.advance(10 * MINUTE)
            assert cluster.reports == []
            assert len(cluster.reviews) + len(cluster.lookups) <= 11 * 2
            cluster.failure, cluster.is_permitted = None, True
            await cluster.advance(3 * MINUTE)
            assert cluster.reports == ["Secret 'token' not found in namespace 'default'"]

    run()


@simulated
async def test_next_secret_is_looked_up_at_once() -> None:
    async with (cluster := Cluster(is_permitted=True)):
        await cluster.create(NAMED)
        await cluster.edit({"secrets": {"huggingFaceToken": "other"}})

        assert len(cluster.lookups) == 2
        assert len(cluster.reviews) == 1
        assert cluster.reports == [
            "Secret 'token' not found in namespace 'default'",
            "Secret 'other' not found in namespace 'default'",
        ]


def render(deployment: Deployment, schema: Schema) -> Rendered:
    """Return the object with the volumes of the spec."""
    rendered = things.render(deployment, schema)
    if volumes := deployment.spec.pod_template.spec.volumes:
        rendered.main["spec"]["volumes"] = volumes
    return rendered


def mounting(ca_bundle: str) -> Provider:
    return replace(PROVIDER, render=render, pod_defaults=PodDefaults(ca_bundle=ca_bundle))


@simulated
async def test_missing_ca_bundle_is_reported_once() -> None:
    async with (cluster := Cluster(is_permitted=True, provider=mounting("company-ca/ca.crt"))):
        await cluster.create(SPEC)
        await cluster.advance(60 * MINUTE)

        assert cluster.reports == ["ConfigMap 'company-ca' not found in namespace 'default'"]
        assert len(cluster.lookups) == 1


@simulated
async def test_model_without_the_bundle_looks_nothing_up() -> None:
    async with (cluster := Cluster(is_permitted=True, provider=mounting(""))):
        await cluster.create(SPEC)
        await cluster.annotate({REFRESH_ANNOTATION: "1"})

        assert (cluster.lookups, cluster.reviews, cluster.reports) == ([], [], [])


@pytest.mark.parametrize(
    "upstream",
    [
        None,
        {"spec": {"volumes": [{"name": "kubefoundry-ca-bundle", "configMap": None}]}},
        {"spec": {"volumes": [{"name": "kubefoundry-ca-bundle", "configMap": {"name": 7}}]}},
        {"spec": {"volumes": [{"name": "kubefoundry-ca-bundle", "configMap": {"name": "../secrets/a"}}]}},
        {"spec": {"volumes": [{"name": "other", "configMap": {"name": "company-ca"}}]}},
    ],
)
def test_corrupt_upstream_object_names_no_bundle(upstream: Object | None) -> None:
    assert bundle_of(upstream) == ""
