"""A spec without an engine: commands foresee the engine that core, the selector or the provider settles."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from kubefoundry_cli.engine import on_engine, on_engine_of, with_kept_engine
from kubefoundry_cli.failure import Failure
from kubefoundry_cli.model_table import rows
from kubefoundry_cli.providers import installed
from kubefoundry_cli.selection import foreseen, selected, with_spec
from kubefoundry_core.decision import Surroundings, decide
from kubefoundry_sdk._api.engine_args import ENGINES
from kubefoundry_sdk._api.engine_choice import effective_engine
from kubefoundry_sdk._api.validation import default
from kubefoundry_sdk._provider.registration import registration
from kubefoundry_selector.candidate import provider
from support.deployments import GPU, model_deployment

Call = Callable[..., Result]

PACKAGES = installed()
REGISTERED = [provider({**registration(one), "status": {"ready": True}}) for one in PACKAGES.values()]
NO_ENGINE: dict[str, Any] = {key: value for key, value in GPU.items() if key != "engine"}
ON_CPU: dict[str, Any] = {"model": {"id": "org/model-GGUF"}}


def stored(spec: dict[str, Any], engine: str | None = None, held_by: str | None = None) -> dict[str, Any]:
    obj = model_deployment("m", "models", default(spec))
    obj["metadata"] |= {"uid": "u", "generation": 1}
    if held_by:
        obj["metadata"]["finalizers"] = [f"kubefoundry.ai/{held_by}-provider"]
        obj["status"] = {"provider": {"name": held_by, **({"engine": engine} if engine else {})}}
    return obj


@pytest.mark.parametrize(
    ("spec", "named", "expected"),
    [
        (NO_ENGINE, None, ("dynamo", "vllm")),
        (NO_ENGINE, "kaito", ("kaito", "vllm")),
        (NO_ENGINE, "direct", ("direct", "vllm")),
        (ON_CPU, None, ("direct", "llamacpp")),
        (ON_CPU, "kuberay", ("kuberay", None)),
        (GPU, None, ("dynamo", None)),
        (GPU, "kaito", ("kaito", None)),
    ],
)
def test_engine_is_foreseen_with_the_provider(
    spec: dict[str, Any], named: str | None, expected: tuple[str, str | None]
) -> None:
    obj = stored({**spec, "provider": {"name": named}} if named else spec)

    chosen = foreseen(obj, REGISTERED, PACKAGES)["status"]["provider"]

    assert (chosen["name"], chosen.get("engine")) == expected


def test_decision_without_a_cluster_names_the_engine() -> None:
    decision = selected(stored(NO_ENGINE), REGISTERED, PACKAGES)

    assert (decision.provider, decision.engine) == ("dynamo", "vllm")


@pytest.mark.parametrize("engine", ENGINES)
def test_edit_keeps_the_engine_of_a_held_model(engine: str) -> None:
    live = stored({**NO_ENGINE, "engine": {"type": engine}}, held_by="direct")
    edited = with_spec(live, default(NO_ENGINE))

    after = foreseen(with_kept_engine(edited, live), REGISTERED, PACKAGES)

    assert effective_engine(after) == engine


def test_engine_of_a_new_model_is_not_kept() -> None:
    live = stored({**NO_ENGINE, "engine": {"type": "trtllm"}})

    assert effective_engine(with_kept_engine(with_spec(live, default(NO_ENGINE)), live)) is None


def test_provider_reads_the_engine_in_the_spec() -> None:
    selected_one = stored(NO_ENGINE, "sglang", held_by="direct")

    assert on_engine(selected_one, None)["spec"]["engine"]["type"] == "sglang"
    for obj, supported, engine in (
        (selected_one, ENGINES, "sglang"),
        (stored(NO_ENGINE), ("trtllm",), "trtllm"),
        (stored(ON_CPU), ("vllm",), None),
    ):
        spec = on_engine_of(obj, "direct", {"direct": supported})["spec"]
        assert spec["engine"].get("type") == engine


def test_list_shows_the_effective_engine() -> None:
    models = [stored(GPU), stored(NO_ENGINE, "sglang", held_by="dynamo"), stored(NO_ENGINE)]

    head, cells = rows(models, everywhere=False, wide=True)

    assert [row[head.index("ENGINE")] for row in cells] == ["vllm", "sglang", "-"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    model = model_deployment("m", "models", NO_ENGINE)
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model), encoding="utf-8")
    return path


def test_explain_names_engine_and_provider(call: Call, file: Path) -> None:
    done = call("explain", "-f", str(file), "--offline")

    assert done.exit_code == 0
    assert done.stdout.startswith("default → dynamo (GPU inference default); engine vllm selected\n")


@pytest.mark.parametrize("options", [[], ["--provider", "direct"], ["--set", "provider.name=direct"]])
def test_render_uses_the_engine_that_is_selected(call: Call, file: Path, options: list[str]) -> None:
    gguf = ["--set", "model.id=org/model-GGUF", "--set", "resources="]

    done = call("render", "-f", str(file), *gguf, *options, "-o", "json")

    assert done.exit_code == 0, done.stderr
    assert "llama.cpp" in done.stdout


@pytest.mark.parametrize("chosen", ["acme", "beta", "other"])
def test_hand_over_is_foreseen_as_core_decides(chosen: str) -> None:
    """Acme serves, the spec names beta, and the status has an engine, of a later choice or none."""
    for serving, one, other, spec in product((*ENGINES, None), ENGINES, ENGINES, (NO_ENGINE, ON_CPU)):
        obj = stored({**spec, "provider": {"name": "beta"}}, serving, held_by="acme")
        obj["status"]["provider"]["name"] = chosen
        engines = {"acme": ENGINES, "beta": (one, other), "other": ENGINES}
        registered = [
            replace(REGISTERED[0], name=name, engines=frozenset(some)) for name, some in engines.items()
        ]

        after = effective_engine(foreseen(obj, registered, {}))

        surroundings = Surroundings(dict.fromkeys(engines, "0.3"), selector=True, engines=engines)
        decided = decide(obj, surroundings)["provider"].get("engine")
        assert after == decided, (serving, one, other, spec)


def test_engine_of_a_hand_over_is_not_guessed() -> None:
    """Other was named and then beta, so the engine in the status is not the one that serves on acme."""
    obj = stored({**NO_ENGINE, "provider": {"name": "beta"}}, "vllm", held_by="acme")
    obj["status"]["provider"]["name"] = "other"

    with pytest.raises(Failure, match="provider acme, which holds the model, has reported the engine"):
        on_engine_of(obj, "beta", {"acme": ENGINES, "beta": ENGINES})
