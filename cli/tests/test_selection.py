"""What explain says is selected is what the selector arrives at in a cluster, where providers refuse one by one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from hypothesis import given, settings

from kubefoundry_cli import upstream
from kubefoundry_cli.providers import installed
from kubefoundry_cli.selection import selected, stored
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.api.names import provider_manager
from kubefoundry_sdk.api.validation import default
from kubefoundry_sdk.provider.registration import registration
from kubefoundry_sdk.testing.generated import specs
from kubefoundry_selector.candidate import provider
from kubefoundry_selector.decision import decide
from support.deployments import CPU, GPU, model_deployment

PACKAGES = installed()
REGISTERED = [provider({**registration(one), "status": {"ready": True}}) for one in PACKAGES.values()]
QUICKSTART = Path(__file__).resolve().parents[2] / "examples" / "quickstart" / "qwen-small.yaml"


@settings(max_examples=40)
@given(specs())
def test_the_selection_is_that_of_a_cluster(spec: dict[str, Any]) -> None:
    obj = _created(spec)

    there = _in_a_cluster(obj)

    assert selected(obj, REGISTERED, PACKAGES).provider == _selected(there)


def test_a_provider_that_refuses_is_left_out(call: Callable[..., Result]) -> None:
    done = call("explain", "--offline", "-f", str(QUICKSTART))

    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("no other provider takes it → direct")
    assert "matched, but kaito refuses it" in done.stdout
    assert (
        "kaito: cannot be selected by changing one or two fields; would refuse it if named: " in done.stdout
    )


def test_the_selection_that_is_stored_says_who_was_left_out() -> None:
    spec = {**CPU, "model": {"id": "org/name/file.gguf"}, "engine": {"type": "llamacpp"}, "image": None}
    there = _in_a_cluster(_created({key: value for key, value in spec.items() if value}))

    kept = stored(there)

    assert kept is not None
    assert str(kept).startswith("direct is selected: no other provider takes it → direct")
    assert str(kept).endswith("(left out, because they refused it: kaito)")
    assert stored({**there, "metadata": {**there["metadata"], "generation": 2}}) is None


@pytest.mark.parametrize(
    ("named", "said"),
    [
        pytest.param("nosuch", "nosuch is not registered (registered: direct, dynamo", id="nobody"),
        pytest.param("kaito", "kaito refuses it: KAITO", id="one that refuses"),
    ],
)
def test_a_named_provider_that_cannot_run_it(
    call: Callable[..., Result], file: Callable[..., str], named: str, said: str
) -> None:
    spec = {**GPU, "engine": {"type": "sglang"}, "provider": {"name": named}}

    done = call("explain", "--offline", "-f", file(spec))

    assert (done.exit_code, said in done.stdout) == (1, True), done.stdout


def test_programs_read_who_was_left_out(call: Callable[..., Result]) -> None:
    done = call("explain", "--offline", "-f", str(QUICKSTART), "-o", "json")

    reported = json.loads(done.stdout)
    assert (reported["decision"]["provider"], reported["selected"], reported["named"]) == (
        "direct",
        None,
        None,
    )


def _in_a_cluster(obj: Object) -> Object:
    """The object once the selector has nothing more to say: each provider that it selects refuses, or accepts."""
    validated = {"type": "Validated", "status": "True", "observedGeneration": 1}
    obj, before = {**obj, "status": {"conditions": [validated]}}, None
    for _ in range(len(PACKAGES) + 2):
        decided = decide(obj, REGISTERED)
        if decided is None or decided == before:
            return obj
        conditions, meta = [validated, *decided["conditions"]], obj["metadata"]
        name = (decided.get("provider") or {}).get("name")
        if name and (said := upstream.problems(PACKAGES[name], obj, None)):
            refusal = {"type": "ProviderCompatible", "status": "False", "observedGeneration": 1}
            conditions.append({**refusal, "message": "; ".join(said)})
            writer = {"manager": provider_manager(name), "subresource": "status", "operation": "Apply"}
            meta = {**meta, "managedFields": [writer]}
        obj, before = {**obj, "metadata": meta, "status": {**decided, "conditions": conditions}}, decided
    raise AssertionError(f"no end: {obj['status']}")


def _selected(obj: Object) -> str | None:
    [condition] = [one for one in obj["status"]["conditions"] if one["type"] == "ProviderSelected"]
    return obj["status"]["provider"]["name"] if condition["status"] == "True" else None


def _created(spec: dict[str, Any]) -> Object:
    made = model_deployment("m", "models", spec)
    return {**made, "metadata": {**made["metadata"], "uid": "u", "generation": 1}, "spec": default(spec)}
