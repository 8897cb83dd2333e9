"""Tests which of a server's settings reach the status: never the value of a variable that may be a secret."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kubefoundry_llamastack.disclosure import disclosed
from kubefoundry_llamastack.render.request import Distribution

Make = Callable[..., Distribution]

SECRET = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "key"}}}
PLAIN = {"name": "KEY", "value": "v"}
FIELD = {"name": "KEY", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}
MOUNTED = {"volumes": [{"name": "keys", "secret": {"secretName": "keys"}}]}


def running(config: Any, provider_id: str = "echo", api: str = "inference") -> dict[str, Any]:
    return {"api": api, "provider_id": provider_id, "provider_type": "remote::x", "config": config}


def external(config: Any, **more: Any) -> dict[str, Any]:
    provider = {"providerId": "echo", "image": "example.com/echo:1", "config": config}
    return {"inference": [{**provider, **more}]}


@pytest.mark.parametrize(
    ("written", "config", "reported"),
    [
        ({"deny": ["${env.KEY}"]}, {"deny": ["v"]}, {"deny": ["${env.KEY}"]}),
        ({"a": {"b": "x-${env.KEY:=y}"}}, {"a": {"b": "x-v"}}, {"a": {"b": "x-${env.KEY:=y}"}}),
        ({"n": "${env.KEY}"}, {"n": 7}, {"n": "${env.KEY}"}),
        ({"prefix": "hi", "n": 1}, {"prefix": "hi", "n": 1}, {"prefix": "hi", "n": 1}),
        ({"api_key": "inline"}, {"api_key": "********"}, {"api_key": "********"}),
        ({"gone": "${env.KEY:+x}", "n": 1}, {"n": 1}, {"n": 1}),
        ({"list": ["${env.KEY:+x}", "b"]}, {"list": ["b"]}, {"list": ["${env.KEY:+x}", "b"]}),
    ],
    ids=["list", "part of a text", "another type", "no variable", "redacted", "left out", "shorter"],
)
@pytest.mark.parametrize("variable", [SECRET, PLAIN], ids=["secret", "plain"])
def test_provider_config_keeps_text_of_cr(
    make: Make, variable: Any, written: Any, config: Any, reported: Any
) -> None:
    cr = make(containerSpec={"env": [variable]}, externalProviders=external(written))

    [shown] = disclosed(cr, [running(config)])

    assert shown == running(reported)


def test_model_deployment_config_keeps_text_of_cr(make: Make) -> None:
    models = [{"name": "echo", "config": {"api_token": "${env.KEY}"}}]
    cr = make(containerSpec={"env": [SECRET]}, modelDeployments=models)

    [shown] = disclosed(cr, [running({"api_token": "v", "base_url": "http://x", "refresh_models": True})])

    assert shown["config"] == {"api_token": "${env.KEY}", "base_url": "http://x", "refresh_models": True}


@pytest.mark.parametrize(
    ("variable", "reported"),
    [
        (SECRET, {"url": "********", "n": "********", "l": ["********"]}),
        (PLAIN, {"url": "v", "n": 1, "l": ["v"]}),
    ],
    ids=["secret", "plain"],
)
@pytest.mark.parametrize("config_of_other", [{"provider_id": "base"}, {"api": "safety"}], ids=["id", "API"])
def test_other_configs_are_shown_only_without_secrets(
    make: Make, variable: Any, reported: Any, config_of_other: Any
) -> None:
    """The CR does not have their configuration, so nobody knows which variables it names."""
    cr = make(containerSpec={"env": [variable]}, externalProviders=external({"url": "x"}))

    [shown] = disclosed(cr, [running({"url": "v", "n": 1, "l": ["v"]}, **config_of_other)])

    assert shown["config"] == reported


VALUES: tuple[Any, ...] = ("text", "", 83746251, 0, -7, 1.5, 1e300, 10**30)
UNSECRET: tuple[Any, ...] = (True, False, None, {}, [])


@pytest.mark.parametrize(
    ("value", "is_shown"),
    [
        *((value, False) for value in VALUES),
        *((value, True) for value in UNSECRET),
    ],
)
def test_values_of_any_type_are_hidden(make: Make, value: Any, is_shown: bool) -> None:
    """The server turns the text of a variable into a number, a boolean or nothing."""
    cr = make(containerSpec={"env": [SECRET]})

    [shown] = disclosed(cr, [running({"a": value, "b": [{"c": value}]}, provider_id="base")])

    expected = value if is_shown else "********"
    assert shown["config"] == {"a": expected, "b": [{"c": expected}]}


@pytest.mark.parametrize("provider_id", ["echo", "base"])
@pytest.mark.parametrize(
    ("server", "message", "reported"),
    [
        ({"containerSpec": {"env": [SECRET]}}, "401 for key v", "********"),
        ({"containerSpec": {"env": [FIELD]}}, "401 for key v", "********"),
        ({"podOverrides": MOUNTED}, "401 for key v", "********"),
        ({"podOverrides": {"serviceAccountName": "reader"}}, "401 for key v", "********"),
        ({"externalProviders": external({}, service={})}, "500: key v", "********"),
        ({"containerSpec": {"env": [SECRET]}}, "", ""),
        ({"containerSpec": {"env": [PLAIN]}}, "401 for key v", "401 for key v"),
    ],
    ids=["secret", "field", "mounted secret", "account's token", "service", "no message", "plain"],
)
def test_health_message_is_hidden_with_secrets(
    make: Make, provider_id: str, server: Any, message: str, reported: str
) -> None:
    """A provider reports the text of any error."""
    cr = make(**{"externalProviders": external({}), **server})
    health = {"status": "Error", "message": message}

    [shown] = disclosed(cr, [{**running({}, provider_id), "health": health}])

    assert shown["health"] == {"status": "Error", "message": reported}
