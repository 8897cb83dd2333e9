"""What is rendered passes the schema of every CRD version, with unknown fields forbidden."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kubefoundry_kuberay.probe import probe
from kubefoundry_kuberay.provider import provider
from kubefoundry_kuberay.settings import Settings
from kubefoundry_sdk._provider.reconcile.compatibility import check
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk.testing.fields import MODEL_IDS, SERVED_NAMES
from kubefoundry_sdk.testing.generated import deployment, specs
from kubefoundry_sdk.testing.structural import violations
from support.sampled_cases import examples
from support.upstream import UpstreamCRD, crds, requires_shared, schema, standin

HEADS = st.fixed_dictionaries(
    {},
    optional={
        "resources": st.fixed_dictionaries(
            {}, optional={"cpu": st.sampled_from(["2", "500m"]), "memory": st.just("8Gi")}
        ),
        "rayStartParams": st.dictionaries(st.sampled_from(["num-cpus", "dashboard-host"]), st.just("0")),
    },
)
PROVIDERS = st.none() | HEADS.map(lambda head: {"name": "kuberay", "overrides": {"head": head}})
MODELS = st.fixed_dictionaries({"id": MODEL_IDS}, optional={"servedName": SERVED_NAMES})
SPECS = specs(engines=["vllm"], provider=PROVIDERS, model=MODELS)

KUBERAY = provider(Settings())


def refused(spec: dict[str, Any], crd: UpstreamCRD) -> list[str]:
    probed = probe(crd.document)
    assert isinstance(probed, Schema)
    model = deployment(spec)
    problems = check(KUBERAY, model, probed).problems
    refusals = ("replicas 0 alone", "scale to zero", "no default image", "has no place for")
    assume(not any(words in text for text in problems for words in refusals))
    assert problems == ()
    return violations(schema(crd, "v1"), KUBERAY.render(model, probed).main)


@pytest.mark.upstream
@requires_shared
@pytest.mark.parametrize("crd", crds("kuberay"), ids=str)
@settings(max_examples=examples(200))
@given(spec=SPECS)
def test_real_crds_take_what_is_rendered(crd: UpstreamCRD, spec: dict[str, Any]) -> None:
    assert refused(spec, crd) == []


@settings(max_examples=examples(100))
@given(spec=SPECS)
def test_stand_in_takes_what_is_rendered(spec: dict[str, Any]) -> None:
    assert refused(spec, standin("kuberay")) == []
