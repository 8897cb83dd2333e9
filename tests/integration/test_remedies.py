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
    """A trouble and its remedy.

    troubled: whether the model shows the trouble.
    words: of the finding.
    command: the beginning of the command that the finding names.
    code: with which the command ends.
    cured: whether the command changed the model; None if it only explains.
    """

    spec: Object
    troubled: Callable[[Object], Any]
    words: str
    command: str
    code: int = 0
    cured: Callable[[Object], Any] | None = lambda obj: True
    annotations: Object | None = None


CASES: Final = {
    "paused": Case(
        GPU,
        lambda obj: (obj.get("status") or {}).get("message") == "reconciliation paused",
        "is paused",
        "kubefoundry resume m",
        cured=lambda obj: names.PAUSED_ANNOTATION not in (obj["metadata"].get("annotations") or {}),
        annotations={names.PAUSED_ANNOTATION: "true"},
    ),
    "scaled to zero": Case(
        {**GPU, "scaling": {"replicas": 0}, "provider": {"name": "kuberay"}},
        lambda obj: reason(obj, "Ready") == "ScaledToZero",
        "is scaled to zero",
        "kubefoundry scale m 1",
        cured=lambda obj: obj["spec"]["scaling"]["replicas"] == 1,
    ),
    "a missing Secret": Case(
        {**GPU, "secrets": {"huggingFaceToken": "hf"}, "provider": {"name": "direct"}},
        lambda obj: reason(obj, "ResourceCreated") == "ResourceCreated",
        "does not exist",
        "kubectl -n {namespace} create secret generic hf --from-literal=HF_TOKEN=…",
    ),
    "unsupported by the named provider": Case(
        {**GPU, "scaling": {"replicas": 3}, "provider": {"name": "kaito"}},
        lambda obj: reason(obj, "ProviderCompatible") == "Unsupported",
        "is refused",
        "kubefoundry explain m",
        code=1,  # the answer is no
        cured=None,
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
    [(program, arguments)] = COMMAND.findall(finding)
    if program == "kubectl":
        code = suite.plane.kubectl(*shlex.split(arguments)).returncode
    else:
        code = (await CommandLine.offline(*shlex.split(arguments))).code

    assert f"{program} {arguments}".startswith(case.command.format(namespace=namespace))
    assert code == case.code
    if case.cured is not None:
        await until_deployment(api, "m", namespace, case.cured)
        after = await kubefoundry("doctor", "m")
        assert case.words not in after.out
