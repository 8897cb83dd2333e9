"""What a ModelDeployment that is being deleted takes with it, and for how long it waits."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web

from kubefoundry_sdk._api.kinds import Kind
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.credentials import Credentials
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._provider.reconcile import finalizer
from kubefoundry_sdk._provider.write.helpers import Helpers
from kubefoundry_sdk._runtime import options
from kubefoundry_sdk._runtime.backoff import FAULT_DELAY
from kubefoundry_sdk._runtime.refusals import PASSING, Refused
from kubefoundry_sdk._runtime.store import Store
from support.contexts import context
from support.wire import Asked, ok, refusal, wire

MODELS = Kind("acme.io", "v1", "models", "Model")
NOBODY = Client(Credentials("", None, lambda: None), user_agent="t")
"""Fails at any call."""


def deployment(*finalizers: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "m",
            "namespace": "n",
            "uid": "u",
            "deletionTimestamp": "2026-03-01T00:00:00Z",
            "finalizers": ["kubefoundry.ai/acme-provider", *finalizers],
        }
    }


def model(owner: str | None, **metadata: Any) -> dict[str, Any]:
    references = (
        [{"apiVersion": "kubefoundry.ai/v1alpha1", "kind": "ModelDeployment", "name": "m", "uid": owner}]
        if owner
        else []
    )
    return {
        "metadata": {
            "name": "m",
            "namespace": "n",
            "uid": "x",
            "resourceVersion": "7",
            "ownerReferences": references,
            **metadata,
        }
    }


@pytest.mark.parametrize(
    ("finalizers", "live", "left"),
    [
        pytest.param((), None, [], id="nothing there"),
        pytest.param((), model("u", deletionTimestamp="now"), ["Model n/m"], id="on its way out"),
        pytest.param((), model("another"), [], id="another's"),
        pytest.param((), model(None), [], id="left by the garbage collector: orphaned"),
        pytest.param(("orphan",), model("u"), [], id="to be orphaned, still owned"),
    ],
)
async def test_clean_up_waits_for_own_objects(
    finalizers: tuple[str, ...], live: dict[str, Any] | None, left: list[str]
) -> None:
    objects = Store()
    objects.replace([live] if live else [], "9")

    assert await finalizer.clean_up(NOBODY, deployment(*finalizers), MODELS, objects, Helpers()) == left


@pytest.mark.parametrize(
    ("manager", "preconditions"),
    [
        pytest.param(None, {"uid": "x", "resourceVersion": "7"}, id="deleted: it may have been let go since"),
        pytest.param("acme-provider", {"uid": "x"}, id="another provider's now: whatever has changed"),
    ],
)
async def test_what_is_deleted_is_what_is_known(manager: str | None, preconditions: dict[str, str]) -> None:
    objects = Store()
    applied = [{"manager": "acme-provider", "operation": "Apply"}]
    objects.replace([model("u", managedFields=applied)], "9")

    async with wire(lambda asked: ok()) as api:
        await finalizer.clean_up(api.client, deployment(), MODELS, objects, Helpers(), manager)

    [asked] = api.asked
    assert asked.body["preconditions"] == preconditions


@pytest.mark.parametrize(
    ("stored", "methods"),
    [
        pytest.param(model("u", resourceVersion="8"), ["DELETE", "GET", "DELETE"], id="its operator wrote"),
        pytest.param(model(None, resourceVersion="8"), ["DELETE", "GET"], id="it was let go"),
        pytest.param(model("another", resourceVersion="8"), ["DELETE", "GET"], id="it is another's"),
        pytest.param(model("u", resourceVersion="8", uid="y"), ["DELETE", "GET"], id="it is another one"),
        pytest.param(
            model("u", resourceVersion="8", deletionTimestamp="now"), ["DELETE", "GET"], id="it goes"
        ),
        pytest.param(None, ["DELETE", "GET"], id="it is gone"),
    ],
)
async def test_changed_object_is_read_and_decided_again(
    stored: dict[str, Any] | None, methods: list[str]
) -> None:
    objects = Store()
    objects.replace([model("u")], "9")

    def answer(asked: Asked) -> web.Response:
        if asked.method == "GET":
            return ok(stored) if stored else refusal(404, "NotFound")
        fits = (
            stored and asked.body["preconditions"]["resourceVersion"] == stored["metadata"]["resourceVersion"]
        )
        return ok() if fits else refusal(409, "Conflict")

    async with wire(answer) as api:
        await finalizer.clean_up(api.client, deployment(), MODELS, objects, Helpers())

    assert [asked.method for asked in api.asked] == methods


@pytest.mark.parametrize(("code", "why"), [(404, "NotFound"), (409, "Conflict")])
async def test_denied_deletion_is_no_deletion(code: int, why: str) -> None:
    objects = Store()
    objects.replace([model("u")], "9")
    denial = 'admission webhook "w.example.com" denied the request: no team of that name'

    async with wire(lambda asked: refusal(code, why, denial)) as api:
        with pytest.raises(ApiError, match="no team of that name"):
            await finalizer.clean_up(api.client, deployment(), MODELS, objects, Helpers())

    assert [asked.method for asked in api.asked] == ["DELETE"]


@pytest.mark.parametrize("finalizers", [None, [], ["foregroundDeletion"]])
async def test_finalizer_that_is_gone_is_not_removed(finalizers: list[str] | None) -> None:
    meta = {"name": "m", "namespace": "n", "uid": "u", "resourceVersion": "1", "finalizers": finalizers}

    async with wire(lambda asked: refusal(409, "Conflict")) as api:
        await finalizer.remove(
            api.client, Store(), {"metadata": meta}, "kubefoundry.ai/a-provider", manager="a"
        )

    assert api.asked == []


NO_PERMISSION = (
    'modeldeployments.kubefoundry.ai "m" is forbidden: User "p" cannot patch resource "modeldeployments" in API '
    'group "kubefoundry.ai" in the namespace "n": access denied'
)
"""The words after the last colon are the authorizer's own."""


@pytest.mark.parametrize(
    ("words", "error"),
    [
        pytest.param(NO_PERMISSION, ApiError, id="an authorizer, which may grant it later"),
        pytest.param('admission webhook "w" denied the request: no', Refused, id="a webhook"),
        pytest.param(
            "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no", Refused, id="a policy"
        ),
    ],
)
async def test_forbidden_finalizer_is_refused_by_policies(words: str, error: type[Exception]) -> None:
    live = {"metadata": {"name": "m", "namespace": "n", "uid": "u", "finalizers": []}}

    async with wire(lambda asked: refusal(403, "Forbidden", words)) as api:
        with pytest.raises(error):
            await finalizer.own(context(client=api.client), live, hold=True, dry_run_result=None)


@pytest.mark.parametrize("code", [400, 403, 422])
async def test_finalizer_refused_by_a_starting_webhook_is_retried_soon(code: int) -> None:
    live = {"metadata": {"name": "m", "namespace": "n", "uid": "u", "finalizers": []}}
    denial = 'admission webhook "w" denied the request: the cache is not started'

    async with wire(lambda asked: refusal(code, "Whatever", denial)) as api:
        with pytest.raises(Refused, match="the cache is not started") as refused:
            await finalizer.own(context(client=api.client), live, hold=True, dry_run_result=None)

    assert refused.value.may_pass
    assert refused.value.retry < 1.0


async def test_lost_finalizer_is_retried_within_a_minute_of_an_outage() -> None:
    live = {"metadata": {"name": "m", "namespace": "n", "uid": "u", "finalizers": []}}

    async with wire(lambda asked: refusal(500, "InternalError", "a webhook is down")) as api:
        provider = context(client=api.client)
        provider.memory(("n", "m")).finalizer.remember(
            "u True None", -2 * PASSING, Refused("no", may_pass=True)
        )

        delay = await finalizer.restore(provider, live)

    assert delay == FAULT_DELAY


@pytest.mark.parametrize(
    ("setting", "seconds"), [(None, 300.0), ("2", 2.0), ("0.5", 0.5), ("0", 0.0), ("20m", 1200.0)]
)
def test_finalizer_timeout_is_a_setting(
    monkeypatch: pytest.MonkeyPatch, setting: str | None, seconds: float
) -> None:
    if setting:
        monkeypatch.setenv("KUBEFOUNDRY_FINALIZER_TIMEOUT", setting)
    parser = options.parser("t", "")
    options.finalizer_timeout(parser)

    assert parser.parse_args([]).finalizer_timeout == seconds


@pytest.mark.parametrize("setting", ["-1", "inf", "nan", "5d"])
def test_finalizer_timeout_rejects_invalid_duration(setting: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = options.parser("t", "")
    options.finalizer_timeout(parser)

    with pytest.raises(SystemExit) as ended:
        parser.parse_args([f"--finalizer-timeout={setting}"])

    assert ended.value.code == 1
    assert f"'{setting}' is not a duration: write 90s, 20m or 1h30m" in capsys.readouterr().err


def test_finalizers_that_hold_are_named_and_clipped() -> None:
    going = model("u", deletionTimestamp="now", finalizers=["foregroundDeletion", "example.com/a"])
    many = model("u", deletionTimestamp="now", finalizers=[f"example.com/{at}" for at in range(7)])

    assert finalizer.held_by([going]) == "; held by finalizer example.com/a"
    assert finalizer.held_by([many]).endswith("example.com/4 and 2 more")
    assert finalizer.held_by([model("u", finalizers=["example.com/a"])]) == ""
