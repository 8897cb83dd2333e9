"""A spec without an engine: core selects one for a provider that the user named, or that came without one."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from kubefoundry_core.admission import modeldeployments
from kubefoundry_core.decision import EXPLICIT, Surroundings, decide
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.engine_args import ENGINES

GPU: dict[str, Any] = {"model": {"id": "org/model"}, "resources": {"gpu": {"count": 1}}}
CPU: dict[str, Any] = {"model": {"id": "org/model"}}
CONTRACTS = {"acme": "0.3", "beta": "0.3"}


def model(
    spec: dict[str, Any],
    *,
    named: str | None = None,
    chosen: str | None = None,
    engine: str | None = None,
    held_by: str | None = None,
    core_owns: bool = False,
) -> dict[str, Any]:
    """Return a ModelDeployment whose status has these selections."""
    meta: dict[str, Any] = {"name": "m", "namespace": "n", "generation": 3}
    if held_by:
        meta["finalizers"] = [f"kubefoundry.ai/{held_by}-provider"]
    if core_owns:
        fields: dict[str, Any] = {"f:status": {"f:provider": {"f:engine": {}}}}
        entry = {"manager": "kubefoundry-core", "operation": "Apply", "subresource": "status"}
        meta["managedFields"] = [{**entry, "fieldsV1": fields}]
    selection = {"name": chosen, "selectedReason": "rule", "engine": engine}
    provider = {key: value for key, value in selection.items() if value} if chosen or engine else {}
    status = {"provider": provider} if provider else {}
    spec = {**spec, "provider": {"name": named}} if named else spec
    return {"metadata": meta, "spec": spec, "status": status}


def chosen_engine(deployment: dict[str, Any], **engines: tuple[str, ...]) -> str | None:
    decided = decide(deployment, Surroundings(CONTRACTS, selector=True, engines=engines))
    return dict(decided.get("provider") or {}).get("engine")


@pytest.mark.parametrize(
    ("spec", "supported", "expected"),
    [
        (GPU, ("llamacpp", "trtllm", "sglang", "vllm"), "vllm"),
        (GPU, ("llamacpp", "trtllm"), "trtllm"),
        (GPU, ("acme-engine",), None),
        (GPU, (), None),
        (CPU, ("vllm", "llamacpp"), "llamacpp"),
        (CPU, ("vllm",), None),
        ({**GPU, "engine": {"args": {"not-a-flag-of-sglang.x": "1"}}}, ("sglang", "vllm"), "vllm"),
    ],
)
def test_first_engine_of_a_named_provider_is_selected(
    spec: dict[str, Any], supported: tuple[str, ...], expected: str | None
) -> None:
    assert chosen_engine(model(spec, named="acme"), acme=supported) == expected


def test_selected_engine_is_named_in_the_condition() -> None:
    decided = decide(
        model(GPU, named="acme"), Surroundings(CONTRACTS, selector=False, engines={"acme": ("vllm",)})
    )

    selected = find(decided["conditions"], "ProviderSelected") or {}
    assert decided["provider"] == {"name": "acme", "selectedReason": EXPLICIT, "engine": "vllm"}
    assert selected["message"] == "Provider acme explicitly selected, engine vllm auto-selected"


@pytest.mark.parametrize("supported", [(), ("vllm",), ("sglang", "vllm"), ENGINES])
@pytest.mark.parametrize("spec", [GPU, CPU])
@pytest.mark.parametrize("owner", ["named", "custom selector"])
def test_engine_of_a_held_model_never_changes(
    spec: dict[str, Any], supported: tuple[str, ...], owner: str
) -> None:
    deployment = model(
        spec,
        named="acme" if owner == "named" else None,
        chosen="acme",
        engine="trtllm",
        held_by="acme",
        core_owns=owner == "custom selector",
    )

    assert chosen_engine(deployment, acme=supported) == "trtllm"


def test_engine_is_kept_until_an_edit_forbids_it() -> None:
    """The whole table of a model that no provider holds: engine, spec and capabilities."""
    for engine, spec, one, other in product(ENGINES, (GPU, CPU), ENGINES, ENGINES):
        supported = (one, other)
        deployment = model(spec, named="acme", chosen="acme", engine=engine)

        now = chosen_engine(deployment, acme=supported)

        possible = [each for each in ENGINES if each in supported and (spec is GPU or each == "llamacpp")]
        expected = engine if engine in possible else next(iter(possible), None)
        assert now == expected, (engine, spec, supported)


@pytest.mark.parametrize(
    ("deployment", "expected"),
    [
        pytest.param(model(GPU, chosen="acme"), "vllm", id="selector without an engine"),
        pytest.param(model(GPU, chosen="acme", engine="sglang"), None, id="engine of the selector"),
        pytest.param(model(GPU), None, id="no provider yet"),
        pytest.param(model(GPU, chosen="acme", held_by="acme"), None, id="provider restores a lost engine"),
        pytest.param(model(GPU, chosen="gone"), None, id="unregistered provider"),
        pytest.param(
            model({**GPU, "engine": {"type": "sglang"}}, chosen="acme", engine="vllm", core_owns=True),
            None,
            id="engine in the spec",
        ),
        pytest.param(
            model({"resources": {}}, chosen="acme", engine="vllm", core_owns=True), "vllm", id="invalid spec"
        ),
        pytest.param(
            model(GPU, named="beta", chosen="acme", engine="sglang", held_by="acme"),
            "sglang",
            id="other name",
        ),
        pytest.param(
            model(GPU, named="beta", chosen="acme", engine="trtllm", held_by="acme"),
            "vllm",
            id="other name without that engine",
        ),
    ],
)
def test_owner_of_the_provider_owns_the_engine(deployment: dict[str, Any], expected: str | None) -> None:
    engines = ("llamacpp", "sglang", "vllm")

    assert chosen_engine(deployment, acme=engines, beta=engines) == expected


@pytest.mark.parametrize(
    ("spec", "supported", "reason"),
    [
        (GPU, ENGINES, ""),
        (GPU, ("trtllm",), " (vllm: not supported by acme; sglang: not supported by acme)"),
        (
            CPU,
            ("vllm", "llamacpp"),
            " (vllm: vLLM engine requires GPU (set resources.gpu.count > 0); "
            "sglang: SGLang engine requires GPU (set resources.gpu.count > 0); "
            "trtllm: TensorRT-LLM engine requires GPU (set resources.gpu.count > 0))",
        ),
    ],
)
def test_reason_of_the_engine_of_a_named_provider_is_kept(
    spec: dict[str, Any], supported: tuple[str, ...], reason: str
) -> None:
    deployment = model(spec, named="acme")
    decided = decide(deployment, Surroundings(CONTRACTS, selector=True, engines={"acme": supported}))
    engine = decided["provider"]["engine"]
    chosen = find(decided["conditions"], "ProviderSelected") or {}

    assert chosen["message"] == f"Provider acme explicitly selected, engine {engine} auto-selected{reason}"
    later = {**deployment, "metadata": {**deployment["metadata"], "generation": 4}, "status": decided}
    again = decide(later, Surroundings(CONTRACTS, selector=True, engines={"acme": (engine,)}))
    assert (find(again["conditions"], "ProviderSelected") or {})["message"] == chosen["message"]


def test_engine_of_a_selector_that_cannot_run_is_reported() -> None:
    for engine in ENGINES[:3]:
        deployment = model(CPU, chosen="acme", engine=engine)

        message = decide(deployment, Surroundings(CONTRACTS, selector=True, engines={"acme": ENGINES}))[
            "message"
        ]

        assert message.startswith(
            f"Engine {engine}, which was selected with provider acme, cannot run the spec: "
        )
        assert message.endswith("if it does not, set engine.type")


def held_elsewhere(
    held_by: str, status_of: str | None, engine: str | None, owners: tuple[str, ...]
) -> dict[str, Any]:
    """Return a model that names beta, with a status of an earlier selection and the owners of its engine."""
    deployment = model(GPU, named="beta", chosen=status_of, engine=engine, held_by=held_by)
    deployment["metadata"]["managedFields"] = [
        {
            "manager": owner,
            "operation": "Apply",
            "subresource": "status",
            "fieldsV1": {"f:status": {"f:provider": {"f:engine": {}}}},
        }
        for owner in owners
    ]
    return deployment


def test_named_provider_waits_for_the_engine_that_serves() -> None:
    """One edit names another provider and drops `engine.type`: only the provider that serves knows the engine."""
    for supported, status_of in product([("vllm",), ("sglang",), ENGINES], ["acme", "beta", None]):
        engines = {"acme": ENGINES, "beta": supported}
        deployment = held_elsewhere("acme", status_of, None, ())
        surroundings = Surroundings(CONTRACTS, selector=True, engines=engines)

        decided = decide(deployment, surroundings)

        assert decided["provider"] == {"name": "beta", "selectedReason": EXPLICIT}, (supported, status_of)
        assert (find(decided["conditions"], "ProviderSelected") or {})["message"] == (
            "Provider beta explicitly selected. Waiting for provider acme, which holds the model, to report the "
            "engine that serves: if it does not run, set engine.type"
        )
        for serving in ENGINES:
            reported = held_elsewhere("acme", "beta", serving, ("acme-provider",))
            kept = serving if serving in supported else supported[0]
            assert chosen_engine(reported, **engines) == kept


def test_provider_without_registration_is_not_waited_for() -> None:
    assert chosen_engine(held_elsewhere("acme", "acme", None, ()), beta=("sglang",)) == "sglang"


@pytest.mark.parametrize("owners", [("acme-provider",), ("acme-provider", "other-provider")])
def test_engine_of_another_provider_is_not_taken_on_return(owners: tuple[str, ...]) -> None:
    """Beta serves, acme was named and then beta again: the status still has the engine that acme was to run."""
    returned = held_elsewhere("beta", "beta", "vllm", owners)

    assert chosen_engine(returned, acme=ENGINES, beta=ENGINES) is None


def test_engine_of_a_provider_that_never_served_is_dropped() -> None:
    """Acme serves, other was named and then beta: other's engine is not the one that serves."""
    between = held_elsewhere("acme", "other", "vllm", ("kubefoundry-core", "other-provider"))

    assert chosen_engine(between, acme=ENGINES, beta=ENGINES, other=("vllm",)) is None


@pytest.mark.parametrize("owner", ["kubefoundry-core", "other-provider"])
def test_stated_engine_is_kept_after_a_refused_hand_over(owner: str) -> None:
    """Acme serves and states its engine, other was named and has refused, and then beta is named."""
    between = held_elsewhere("acme", "other", "vllm", (owner, "acme-provider"))

    assert chosen_engine(between, acme=ENGINES, beta=ENGINES, other=ENGINES) == "vllm"


def test_foreign_selector_gets_the_engine_that_serves() -> None:
    """It chose beta without an engine, and acme reports the one that serves."""
    deployment = held_elsewhere("acme", "beta", "sglang", ("acme-provider",))
    deployment["spec"] = GPU

    assert chosen_engine(deployment, acme=ENGINES, beta=ENGINES) == "sglang"


def test_provider_of_an_earlier_contract_needs_an_engine() -> None:
    decided = decide(
        model(GPU, named="acme"), Surroundings({"acme": ""}, selector=True, engines={"acme": ("vllm",)})
    )

    validated = find(decided["conditions"], "Validated") or {}
    assert (validated["status"], validated["reason"]) == ("False", "ProviderTooOld")
    assert validated["message"].endswith("upgrade the provider, or set engine.type")


def review(spec: dict[str, Any], old: dict[str, Any], **annotations: str) -> dict[str, Any]:
    request = {
        "uid": "u",
        "kind": {"group": "kubefoundry.ai", "kind": "ModelDeployment"},
        "object": {"metadata": {"name": "m", "namespace": "n", "annotations": annotations}, "spec": spec},
        "oldObject": old,
    }
    return {"request": request}


@pytest.mark.parametrize(
    ("edit", "held_by", "annotations", "refused"),
    [
        pytest.param(CPU, "acme", {}, True, id="engine cannot run it"),
        pytest.param(CPU, None, {}, False, id="nothing is created"),
        pytest.param({**GPU, "image": "example.com/x:2"}, "acme", {}, False, id="engine can run it"),
        pytest.param({**CPU, "engine": {"type": "llamacpp"}}, "acme", {}, False, id="another engine"),
        pytest.param(CPU, "acme", {"kubefoundry.ai/reselect": "1"}, False, id="another choice"),
    ],
)
def test_edit_that_the_engine_cannot_run_is_rejected(
    edit: dict[str, Any], held_by: str | None, annotations: dict[str, str], refused: bool
) -> None:
    old = model(GPU, chosen="acme", engine="vllm", held_by=held_by)

    answer: Any = modeldeployments.validate(review(edit, old, **annotations), {})["response"]

    assert answer["allowed"] is not refused
    if refused:
        assert answer["status"]["message"].endswith("; engine vllm was selected: set engine.type for another")


def test_edit_that_drops_the_engine_and_the_gpu_is_rejected() -> None:
    old = model({**GPU, "engine": {"type": "vllm"}}, chosen="acme", held_by="acme")

    answer: Any = modeldeployments.validate(review(CPU, old), {})["response"]

    assert not answer["allowed"]


def test_reselect_beside_a_named_provider_admits_no_such_edit() -> None:
    old = model(GPU, named="acme", chosen="acme", engine="vllm", held_by="acme")
    edit = {**CPU, "provider": {"name": "acme"}}

    answer: Any = modeldeployments.validate(review(edit, old, **{"kubefoundry.ai/reselect": "1"}), {})

    assert not answer["response"]["allowed"]


@pytest.mark.parametrize(
    ("before", "after", "is_warned"),
    [
        ({}, {"type": "vllm"}, False),
        ({}, {"type": "sglang"}, True),
        ({"type": "vllm"}, {}, False),
        ({"type": "vllm"}, {"type": "sglang"}, True),
    ],
)
def test_edit_of_the_effective_engine_is_warned_about(
    before: dict[str, str], after: dict[str, str], is_warned: bool
) -> None:
    engine = None if before else "vllm"
    old = model({**GPU, "engine": before}, chosen="acme", engine=engine, held_by="acme")

    answer: Any = modeldeployments.validate(review({**GPU, "engine": after}, old), {})["response"]

    warnings = [text for text in answer.get("warnings", []) if "recreates" in text]
    assert [text[:23] for text in warnings] == (["a change of engine.type"] if is_warned else [])
