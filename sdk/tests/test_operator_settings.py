"""Settings read off the upstream operator's Deployment, as it comes, changes and goes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._provider.upstream_kind import Operator
from kubefoundry_sdk._provider.watch.operator_settings import OperatorSettings


def deployment(mode: str | None, namespace: str = "acme") -> Object:
    return {"metadata": {"name": "acme-operator", "namespace": namespace}, "spec": {"mode": mode}}


def read(obj: Object) -> Mapping[str, str]:
    return {"mode": obj["spec"]["mode"]} if obj["spec"]["mode"] else {}


def settings(**stated: str) -> tuple[OperatorSettings, list[Mapping[str, str]]]:
    """Return the settings, and a list that receives the settings at each reported change."""
    received: list[Mapping[str, str]] = []
    operator_settings = OperatorSettings(
        Operator("acme-operator", ("acme",), read, stated), lambda: received.append(operator_settings.values)
    )
    return operator_settings, received


def test_operator_settings_are_reported_when_they_change() -> None:
    operator_settings, received = settings()

    operator_settings.see([], "acme")
    operator_settings.see([deployment("auto")], "acme")
    operator_settings.see([deployment("auto")], "acme")
    operator_settings.see([deployment("byo")], "acme")

    assert received == [{}, {"mode": "auto"}, {"mode": "byo"}]


def test_operator_settings_stay_when_operator_is_missing() -> None:
    operator_settings, received = settings()
    operator_settings.see([deployment("auto")], "acme")

    operator_settings.see([], "acme")

    assert (operator_settings.values, received) == ({"mode": "auto"}, [{"mode": "auto"}])
    operator_settings.see([deployment("byo")], "acme")
    assert operator_settings.values == {"mode": "byo"}


def test_operators_that_disagree_tell_nothing() -> None:
    operator_settings, _ = settings()

    operator_settings.see([deployment("auto", "one"), deployment("byo", "two")], "acme")
    assert operator_settings.values == {}
    operator_settings.see([deployment("auto", "one")], "acme")

    assert operator_settings.values == {"mode": "auto"}


SEEN = "read from Deployment acme/acme-operator"
DEFAULTS = "using the provider's defaults: if they are wrong, set the flags"


@pytest.mark.parametrize(
    ("stated", "deployments", "reason", "message"),
    [
        pytest.param({}, [deployment("auto")], "Known", f"mode=auto: {SEEN}", id="read"),
        pytest.param({"mode": "byo"}, [deployment("auto")], "Known", "mode=byo: set by flags", id="stated"),
        pytest.param(
            {"zone": "a"},
            [deployment("auto")],
            "Known",
            f"zone=a: set by flags; mode=auto: {SEEN}",
            id="both",
        ),
        pytest.param(
            {},
            [],
            "NotDiscovered",
            f"no Deployment acme-operator found in acme; {DEFAULTS}",
            id="absent",
        ),
        pytest.param(
            {},
            [deployment(None)],
            "NotDiscovered",
            f"Deployment acme/acme-operator does not show the settings; {DEFAULTS}",
            id="silent",
        ),
    ],
)
def test_operator_settings_condition_names_their_source(
    stated: dict[str, str], deployments: list[Object], reason: str, message: str
) -> None:
    operator_settings, _ = settings(**stated)

    operator_settings.see(deployments, "acme")

    condition = operator_settings.condition()
    assert (condition["reason"], condition["message"]) == (reason, message)
    assert condition["status"] == str(reason == "Known")
    assert operator_settings.is_known
