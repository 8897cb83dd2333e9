"""A provider whose functions return values of wrong types gets a report, never a traceback."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubefoundry_conformance import report
from kubefoundry_conformance.cases import Unusable
from kubefoundry_conformance.functions.subject import Functions
from kubefoundry_conformance.main import check_functions
from kubefoundry_sdk import Endpoint, Observation, Rendered, Replicas
from support import conformance_subjects as subjects

ODD: Any = st.sampled_from(
    [None, 0, -1, 1.5, True, "", "text", b"bytes", [], [None], {}, {"a": 1}, {1}, object()]
)
METADATA: Any = ODD | st.fixed_dictionaries(
    {"name": st.just("m") | ODD}, optional={"labels": ODD, "uid": ODD}
)
OBJECTS: Any = ODD | st.fixed_dictionaries(
    {"apiVersion": st.just("example.com/v1") | ODD, "kind": st.just("Widget") | ODD, "metadata": METADATA},
    optional={"spec": ODD},
)
RETURNED: Any = {
    "probe": ODD,
    "supports": ODD,
    "render": ODD
    | st.builds(Rendered, OBJECTS, st.tuples(OBJECTS) | ODD, st.tuples(ODD) | ODD, st.none() | ODD),
    "observe": ODD
    | st.builds(
        Observation,
        st.just("Running") | ODD,
        st.just("DeploymentReady") | ODD,
        st.just("serves") | ODD,
        st.builds(Replicas, ODD, ODD, ODD) | st.just(Replicas(1, 1, 1)) | ODD,
        st.builds(Endpoint, ODD, ODD, ODD) | ODD,
        selector=ODD,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("function", RETURNED)
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_wrong_types_are_reported(function: str, data: st.DataObject) -> None:
    returned = data.draw(RETURNED[function])
    sound = subjects.of_a_crd()
    changed: Any = {function: lambda *_: returned}
    provider = replace(sound.provider, **changed)

    try:
        results = check_functions(Functions(provider, sound.crd, sound.cases, examples=3))
    except Unusable as refused:
        assert str(refused).startswith("probe ")
        return

    assert report.is_conformant(results) or any(result.outcome == "failed" for result in results)
    assert report.as_json("widgets", results) and report.as_junit("widgets", results)


@pytest.mark.parametrize("returned", [None, {"main": {}}, Rendered({}), Rendered(main=[])])  # type: ignore[arg-type]
def test_render_of_another_type_fails_ren_1(returned: Any) -> None:
    sound = subjects.of_a_crd()
    provider = replace(sound.provider, render=lambda *_: returned)

    results = check_functions(Functions(provider, sound.crd, sound.cases, examples=3))

    failed = {result.rule: result.seen for result in results if result.outcome == "failed"}
    assert set(failed) == {"REN-1"}
    assert failed["REN-1"].startswith("render returns ")


@pytest.mark.parametrize(
    ("rule", "supports"),
    [("SUP-2", lambda *_: None), ("SUP-3", lambda _, schema: None if schema is None else [])],
)
def test_supports_of_another_type_is_no_exception(rule: str, supports: Any) -> None:
    sound = subjects.of_a_crd()
    provider = replace(sound.provider, supports=supports)

    results = check_functions(Functions(provider, sound.crd, sound.cases, examples=3))

    [result] = [result for result in results if result.rule == rule]
    assert (result.outcome, result.seen) == ("failed", "supports returned None, not a list of sentences")


def test_skipped_default_image_says_how_to_check_it() -> None:
    sound = subjects.of_a_crd()

    results = check_functions(Functions(sound.provider, sound.crd, sound.cases, examples=3))

    [result] = [result for result in results if result.rule == "REN-7"]
    assert (result.outcome, "name a callable with --functions" in result.seen) == ("skipped", True)
