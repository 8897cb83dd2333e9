"""The commands that `doctor` names for a model with trouble: each runs as it is printed, and the trouble is over."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk.api import names
from kubefoundry_sdk.api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk.cluster.client import Client
from support.command_line import CommandLine
from support.deployments import GPU, model_deployment
from support.waiting import reason, until_deployment

pytestmark = pytest.mark.integration

COMMAND: Final = re.compile(r"\b(kubefoundry|kubectl) ([^;:`\n]*)")


@dataclass(frozen=True)
class Case:
    """spec: of the model. troubled: the model shows the trouble. words: of the finding. cured: afterwards."""

    spec: Object
    troubled: Callable[[Object], Any]
    words: str
    commands: tuple[str, ...]
    cured: Callable[[Object], Any] = lambda obj: True
    annotations: Any = None


CASES: Final = {
    "paused": Case(
        GPU,
        lambda obj: (obj.get("status") or {}).get("message") == "reconciliation paused",
        "is paused",
        ("kubefoundry resume m",),
        lambda obj: names.PAUSED_ANNOTATION not in (obj["metadata"].get("annotations") or {}),
        {names.PAUSED_ANNOTATION: "true"},
    ),
    "scaled to zero": Case(
        {**GPU, "scaling": {"replicas": 0}, "provider": {"name": "kuberay"}},
        lambda obj: reason(obj, "Ready") == "ScaledToZero",
        "is scaled to zero",
        ("kubefoundry scale m 1",),
        lambda obj: obj["spec"]["scaling"]["replicas"] == 1,
    ),
    "a missing Secret": Case(
        {**GPU, "secrets": {"huggingFaceToken": "hf"}, "provider": {"name": "direct"}},
        lambda obj: reason(obj, "ResourceCreated") == "ResourceCreated",
        "does not exist",
        ("kubectl -n {namespace} create secret generic hf --from-literal=HF_TOKEN=…",),
    ),
    "an edit that no provider supports": Case(
        {**GPU, "scaling": {"replicas": 3}, "provider": {"name": "kaito"}},
        lambda obj: reason(obj, "ProviderCompatible") == "Unsupported",
        "is refused",
        ("kubefoundry explain m",),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_remedy_of_doctor_works_when_followed(
    suite: Suite, api: Client, namespace: str, case: Case
) -> None:
    kubefoundry = CommandLine(suite.plane.kubeconfig, namespace)
    body = model_deployment("m", namespace, case.spec, annotations=case.annotations or {})
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(api, "m", namespace, case.troubled)

    before = await kubefoundry("doctor", "m")
    finding = next(line for line in before.out.splitlines() if case.words in line)
    commands = COMMAND.findall(finding)
    for program, arguments in commands:
        if program == "kubectl":
            suite.plane.kubectl(*shlex.split(arguments))
        else:
            done = await CommandLine.offline(*shlex.split(arguments))
            # explain exits with 1 where the answer is no
            assert done.code in ((0, 1) if arguments.startswith("explain") else (0,)), done

    printed = [f"{program} {arguments}" for program, arguments in commands]
    expected = [command.format(namespace=namespace) for command in case.commands]
    assert [line for line, start in zip(printed, expected, strict=True) if not line.startswith(start)] == []
    await until_deployment(api, "m", namespace, case.cured)
    after = await kubefoundry("doctor", "m")
    assert not expected or "explain" in expected[0] or case.words not in after.out
