"""What a provider in the cluster was started with, and what the command line makes of it."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version as version_of
from typing import Any

import pytest

from kubefoundry_cli.providers import configured, named
from kubefoundry_sdk._provider.flags import flag_of, started_with
from kubefoundry_sdk._provider.run import parser

STARTED = {
    "kaito": {"--kaito-provisioning": "auto", "--kaito-gpu-instance-type": "Standard_NC24"},
    "dynamo": {"--default-image": "vllm=example.com/vllm:1.0.0", "--runtime-version": "1.0.0"},
    "kuberay": {"--default-image": "vllm=example.com/ray:2.50.0", "--ray-version": "2.50.0"},
    "direct": {
        "--default-image": "sglang=example.com/a:1,vllm=example.com/b:2",
        "--propagate-annotations": "owner,example.com/cost",
        "--propagate-labels": "",
        "--run-as-user": "cluster",
    },
}


@pytest.mark.parametrize("name", STARTED)
def test_provider_is_rebuilt_from_its_reported_flags(name: str) -> None:
    flags, made = STARTED[name], parser(name)
    add_arguments = getattr(import_module(f"kubefoundry_{name}.settings"), "add_arguments", None)
    if add_arguments:
        add_arguments(made)
    parsed = made.parse_args([f"{flag}={text}" for flag, text in flags.items()])

    published = started_with(parsed, parser(name).parse_args([]))
    again, notes = configured(named(name), config(name, published))

    assert published == flags
    assert (dict(again.flags), notes) == (flags, [])


@pytest.mark.parametrize("name", STARTED)
def test_flags_of_the_cluster_ignore_the_local_environment(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = parser(name)
    add_arguments = getattr(import_module(f"kubefoundry_{name}.settings"), "add_arguments", None)
    if add_arguments:
        add_arguments(made)
    variables = {
        f"KUBEFOUNDRY_{flag_of(dest)[2:].replace('-', '_').upper()}" for dest in vars(made.parse_args([]))
    }
    assert "KUBEFOUNDRY_DEFAULT_IMAGE" in variables
    published = config(name, dict([*STARTED[name].items()][:1]))
    before = configured(named(name), published)
    for variable in variables:
        monkeypatch.setenv(variable, "vllm=example.com/mine:9.9.9" if "IMAGE" in variable else "9.9.9")

    after = configured(named(name), published)

    assert after[1] == before[1] == []
    assert repr(after[0]) == repr(before[0])


@pytest.mark.parametrize(
    ("status", "said"),
    [
        pytest.param(None, "is unknown: these are defaults", id="no InferenceProviderConfig"),
        pytest.param(
            {"version": "kuberay-provider:v9.9.9", "flags": {}}, "the cluster runs", id="another version"
        ),
        pytest.param(
            {"flags": {"--kubeconfig": "/x"}}, "no flag --kubeconfig in this version", id="not its own"
        ),
        pytest.param({"flags": {"--help": ""}}, "no flag --help", id="help"),
        pytest.param(
            {"flags": {"--default-image": "sglang=x:1"}}, "KubeRay runs engine vllm only", id="refused"
        ),
        pytest.param({"flags": {"--ray-version": "x"}}, "does not take these flags", id="of a wrong form"),
        pytest.param({"flags": ["x"]}, "cannot render with the flags of", id="of a wrong type"),
    ],
)
def test_unreadable_flags_of_a_provider_leave_the_defaults(
    status: dict[str, Any] | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    full = {"version": newest("kuberay"), **status} if status is not None else None

    made, [note] = configured(named("kuberay"), {"status": full} if full else None)

    assert said in note
    assert dict(made.flags) == {}
    assert capsys.readouterr() == ("", "")


def newest(name: str) -> str:
    """Return the version that the provider of this checkout registers."""
    return f"{name}-provider:v{version_of(f'kubefoundry-provider-{name}')}"


def config(name: str, flags: dict[str, str]) -> dict[str, Any]:
    return {
        "status": {
            "version": newest(name),
            "flags": flags,
        }
    }
