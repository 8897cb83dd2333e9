"""Each change that a provider's refusal names ends the refusal."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from kubefoundry_cli.upstream import problems
from kubefoundry_direct.provider import provider as direct
from kubefoundry_direct.settings import Settings as DirectSettings
from kubefoundry_dynamo.provider import provider as dynamo
from kubefoundry_dynamo.settings import Settings as DynamoSettings
from kubefoundry_kaito.provider import provider as kaito
from kubefoundry_kaito.settings import Settings as KaitoSettings
from kubefoundry_kuberay.provider import provider as kuberay
from kubefoundry_kuberay.settings import Settings as KubeRaySettings
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._provider.upstream_kind import Schema
from support.deployments import CPU, DISAGGREGATED, GPU, model_deployment
from support.refused_specs import GONE, changed

Edit = Callable[[Object], None]

PROVIDERS: Final[dict[str, tuple[Provider, Schema]]] = {
    "kaito": (kaito(KaitoSettings()), Schema("kaito.sh/v1beta1")),
    "dynamo": (dynamo(DynamoSettings()), Schema("nvidia.com/v1alpha1")),
    "kuberay": (kuberay(KubeRaySettings()), Schema("ray.io/v1")),
    "direct": (direct(DirectSettings()), Schema("apps/v1")),
}

VALUES: Final[dict[str, Any]] = {
    "image": "example.com/engine:99.0.0",
    "model.servedName": "served",
    "provider.overrides.instanceType": "Standard_NC24ads_A100_v4",
}
"""For fields that a message tells to set to a value of the user's choice."""

PATH: Final = r"(?:engine|model|provider|resources|scaling|podTemplate|env|secrets)\.[\w./-]*\w"
SET: Final = re.compile(rf"\bset (image|it|{PATH})(?: to (\w+)| (> 0))?")
REMOVE: Final = re.compile(rf"\bremove (it|{PATH})")
RENAME: Final = re.compile(
    r"\b(?:choose another name|choose a shorter|under (?:another|a shorter) name|use at most)"
)
LOWER: Final = re.compile(r"\blower it")


def steps(path: str) -> list[str]:
    """Split the path of a field; all that follows `engine.args` or `annotations` is one key."""
    for parent in ("engine.args", "podTemplate.metadata.labels", "podTemplate.metadata.annotations"):
        if path.startswith(parent + "."):
            return [*parent.split("."), path.removeprefix(parent + ".")]
    return path.split(".")


def subject(message: str) -> str:
    """Return the field that `it` is: the first that the message names."""
    if flag := re.search(r'engine\.args(?: that have a value, and "|[. ]"?)([\w.-]*\w)', message):
        return f"engine.args.{flag[1]}"
    found = re.search(PATH, message)
    assert found is not None, message
    return found[0]


def put(path: str, value: Any) -> Edit:
    """Set a field of the spec, or remove it with GONE."""

    def edit(obj: Object) -> None:
        *parents, name = steps(path)
        part = obj["spec"]
        for parent in parents:
            part = part.setdefault(parent, {})
        if value is GONE:
            assert part.pop(name, None) is not None, path
        else:
            part[name] = value

    return edit


def rename(obj: Object) -> None:
    obj["metadata"]["name"] = "other"


def remedies(message: str) -> Iterator[Edit]:
    """Every edit that the message names, each as an alternative."""
    for path, value, positive in SET.findall(message):
        named = subject(message) if path == "it" else path
        known = {"true": True, "false": False, "": VALUES.get(named, 1)}
        yield put(named, 1 if positive else int(value) if value.isdigit() else known.get(value, value))
    for path in REMOVE.findall(message):
        yield put(subject(message) if path == "it" else path, GONE)
    if RENAME.search(message):
        yield rename
    if LOWER.search(message):
        yield put(subject(message), 1)


LONG: Final = "m" * 250
AMD: Final = changed(GPU, resources__gpu__type="amd.com/gpu")
CASES: Final[dict[str, tuple[str, Object, str]]] = {
    "kaito at zero": ("kaito", changed(GPU, scaling__replicas=0), "m"),
    "kaito with replicas": ("kaito", changed(GPU, scaling__replicas=3), "m"),
    "kaito long name": ("kaito", GPU, LONG),
    "kaito dotted name": ("kaito", GPU, "m.n"),
    "kaito name of an engine": ("kaito", GPU, "vllm"),
    "kaito without remote code": ("kaito", changed(GPU, engine__trustRemoteCode=False), "m"),
    "kaito AMD": ("kaito", AMD, "m"),
    "kaito flag without value": ("kaito", changed(GPU, engine__args={"enable-x": ""}), "m"),
    "kaito instance type": (
        "kaito",
        changed(GPU, provider={"name": "kaito", "overrides": {"instanceType": "x"}}),
        "m",
    ),
    "kaito no image": ("kaito", changed(CPU, image=GONE), "m"),
    "kaito served name": ("kaito", changed(CPU, model__servedName="x"), "m"),
    "kuberay long name": ("kuberay", GPU, LONG),
    "kuberay name": ("kuberay", GPU, "1.m"),
    "kuberay without GPU": ("kuberay", changed(GPU, resources__gpu__count=0), "m"),
    "kuberay replicas": ("kuberay", changed(GPU, scaling__replicas=100000), "m"),
    "kuberay GPUs": ("kuberay", changed(DISAGGREGATED, scaling__prefill__gpu__count=100000), "m"),
    "kuberay role at zero": ("kuberay", changed(DISAGGREGATED, scaling__prefill__replicas=0), "m"),
    "kuberay AMD": ("kuberay", AMD, "m"),
    "kuberay port": ("kuberay", changed(GPU, engine__args={"port": "1"}), "m"),
    "kuberay executor": (
        "kuberay",
        changed(GPU, engine__args={"distributed-executor-backend": "mp"}),
        "m",
    ),
    "dynamo long name": ("dynamo", GPU, LONG),
    "dynamo role at zero": ("dynamo", changed(DISAGGREGATED, scaling__prefill__replicas=0), "m"),
    "dynamo role flag": ("dynamo", changed(GPU, engine__args={"disaggregation-mode": "prefill"}), "m"),
    "dynamo AMD": ("dynamo", AMD, "m"),
    "direct name": ("direct", GPU, LONG),
    "direct AMD": ("direct", changed(AMD, engine__type="trtllm"), "m"),
    "direct port": ("direct", changed(GPU, engine__args={"port": "1"}), "m"),
    "direct TLS": ("direct", changed(GPU, engine__args={"ssl-keyfile": "/key"}), "m"),
}
"""By provider: a spec that it refuses, and the model's name."""


@pytest.mark.parametrize(("name", "spec", "model"), CASES.values(), ids=CASES)
def test_each_change_named_by_a_refusal_ends_it(name: str, spec: Object, model: str) -> None:
    provider, schema = PROVIDERS[name]
    refused = model_deployment(model, "models", spec)
    refused["metadata"] |= {"uid": "u", "generation": 1}

    messages = problems(provider, refused, schema)

    assert messages
    for message in messages:
        edits = list(remedies(message))
        assert edits, message
        for edit in edits:
            edited = copy.deepcopy(refused)
            edit(edited)
            assert message not in problems(provider, edited, schema), message
