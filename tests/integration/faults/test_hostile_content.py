"""One tenant's objects, however deep, large or odd, end no process and stop no other tenant's model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.requests import path
from support.deployments import GPU, model_deployment
from support.kinds import UPSTREAM
from support.suites import running_suite
from support.waiting import phase, reason, until_deployment

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

PROVIDERS = ("kaito", "dynamo", "kuberay")
DEEP = "is nested more than 64 levels deep"
LARGE = "bytes as JSON, not "


def nested(levels: int, opener: str = '{"a":', closer: str = "}") -> str:
    return opener * levels + "1" + closer * levels


HOSTILE: dict[str, tuple[str, str]] = {
    **{f"deep-{levels}": (nested(levels), DEEP) for levels in (100, 500, 960, 1000, 9000)},
    **{f"lists-{levels}": (nested(levels, "[", "]"), DEEP) for levels in (500, 1000, 9000)},
    "wide-and-deep": (f"[{','.join([nested(5000)] * 15)}]", DEEP),
    "large": (json.dumps("x" * 900_000), LARGE),
    "many": (json.dumps({f"k{number}": "y" * 40 for number in range(15_000)}), LARGE),
}
"""JSON of an override by name, and what core says of the spec with it."""


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Suite]:
    """A suite that is still to be started."""
    with running_suite(tmp_path, *PROVIDERS) as made:
        yield made


def create(suite: Suite, name: str, namespace: str, override: str, provider: str) -> None:
    """As text: what a test writes as Python objects is as deep as Python goes."""
    body = json.dumps(model_deployment(name, namespace, GPU, provider=provider))
    head, tail = body.rsplit('"provider": {', 1)
    text = f'{head}"provider": {{"overrides": {{"x": {override}}}, {tail}'
    suite.plane.kubectl("create", "--raw", path(MODEL_DEPLOYMENTS, namespace), "-f", "-", input=text)


def attack(suite: Suite, namespace: str, prefix: str) -> dict[str, str]:
    """What was created, by name, and what is to be said of it."""
    reported = {}
    for number, (name, (override, words)) in enumerate(HOSTILE.items()):
        create(suite, f"{prefix}-{name}", namespace, override, PROVIDERS[number % len(PROVIDERS)])
        reported[f"{prefix}-{name}"] = words
    return reported


async def served(api: Client, namespace: str, prefix: str) -> None:
    """One good model of each provider, with an emoji in its environment where there is a place for one."""
    for provider in PROVIDERS:
        spec = GPU if provider == "kaito" else {**GPU, "env": [{"name": "GREETING", "value": "😀"}]}
        body = model_deployment(f"{prefix}-{provider}", namespace, spec, provider=provider)
        await api.create(MODEL_DEPLOYMENTS, body, manager="user")
    for provider in PROVIDERS:
        await until_deployment(api, f"{prefix}-{provider}", namespace, lambda obj: phase(obj) == "Running")
        upstream = await api.get(UPSTREAM[provider], f"{prefix}-{provider}", namespace)
        assert ("😀" in json.dumps(upstream, ensure_ascii=False)) == (provider != "kaito")


def validated(obj: Object) -> dict[str, Any]:
    return find((obj.get("status") or {}).get("conditions"), "Validated") or {}


async def explained(api: Client, namespace: str, reported: dict[str, str]) -> None:
    for name, words in reported.items():
        obj = await until_deployment(
            api, name, namespace, lambda found: reason(found, "Validated") is not None
        )
        assert validated(obj)["status"] == "False"
        assert words in validated(obj)["message"], name
        assert len(validated(obj)["message"]) < 500


async def test_deployments_of_any_depth_and_size(fresh: Suite, api: Client, namespace: str) -> None:
    before = attack(fresh, namespace, "before")

    fresh.start()
    await served(api, namespace, "first")
    await explained(api, namespace, before)

    # The webhooks would refuse what comes now; without them it comes by every watch.
    kinds = "mutatingwebhookconfigurations,validatingwebhookconfigurations"
    fresh.plane.kubectl("delete", kinds, "kubefoundry-core")
    later = attack(fresh, namespace, "later")
    body = '{"metadata":{"annotations":{"touched":"yes"}}}'
    fresh.plane.kubectl("patch", "md", *before, "-n", namespace, "--type=merge", "-p", body)
    await served(api, namespace, "second")
    await explained(api, namespace, later)

    for name, component in fresh.components.items():
        assert component.running, name
        assert component.log.stat().st_size < 2**20, "nobody logs what a tenant wrote"
        assert "Traceback" not in component.log.read_text(), name


async def test_they_are_refused_in_words_where_the_webhook_is_asked(
    suite: Suite, api: Client, namespace: str
) -> None:
    for name, (override, words) in HOSTILE.items():
        body = json.dumps(model_deployment(name, namespace, GPU, provider="dynamo"))
        head, tail = body.rsplit('"provider": {', 1)
        refused = await asyncio.to_thread(
            suite.plane.kubectl,
            *("create", "--raw", path(MODEL_DEPLOYMENTS, namespace), "-f", "-"),
            input=f'{head}"provider": {{"overrides": {{"x": {override}}}, {tail}',
            check=False,
        )
        assert refused.returncode and words in refused.stderr, (name, refused.stderr[:500])
