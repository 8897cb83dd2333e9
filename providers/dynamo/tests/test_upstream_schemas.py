"""What is rendered passes the schema of every CRD version, with unknown fields forbidden."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kubefoundry_dynamo.probe import probe
from kubefoundry_dynamo.render import render
from kubefoundry_dynamo.settings import Settings
from kubefoundry_dynamo.supports import supports
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk.testing.generated import deployment, specs
from kubefoundry_sdk.testing.structural import violations
from support.sampled_cases import examples
from support.upstream import UpstreamCRD, crds, requires_shared, schema, standin

FRONTEND = st.fixed_dictionaries(
    {},
    optional={
        "replicas": st.integers(1, 4),
        "resources": st.fixed_dictionaries(
            {},
            optional={
                "cpu": st.sampled_from(["2", 4, "500m"]),
                "memory": st.sampled_from(["4Gi", 4294967296]),
            },
        ),
    },
)
OVERRIDES = st.fixed_dictionaries(
    {}, optional={"routerMode": st.sampled_from(["kv", "round-robin", "none"]), "frontend": FRONTEND}
)
PROVIDERS = st.none() | st.builds(lambda overrides: {"name": "dynamo", "overrides": overrides}, OVERRIDES)
SPECS = specs(engines=["vllm", "sglang", "trtllm"], provider=PROVIDERS)


def stored_as(crd: UpstreamCRD, version: str) -> UpstreamCRD:
    """The CRD with another storage version, so that its other transformer is chosen."""
    document = copy.deepcopy(crd.document)
    for candidate in document["spec"]["versions"]:
        candidate["storage"] = candidate["name"] == version
    return UpstreamCRD(f"{crd.name} stored as {version}", document)


EVERY = [stored_as(crd, version) for crd in crds("dynamo") for version in crd.served_versions]


def refused(spec: dict[str, Any], crd: UpstreamCRD) -> list[str]:
    probed = probe(crd.document)
    assert isinstance(probed, Schema)
    asked = deployment(spec, "m", "models")
    problems = supports(asked, probed, Settings())
    refusals = (
        "replicas 0 alone",
        "no default image",
        "has no place for",
        "mounts no volume",
        "reads no object storage",
    )
    assume(not any(words in text for text in problems for words in refusals))
    assert problems == []
    rendered = render(asked, probed, Settings())
    return violations(schema(crd, probed.api_version.rpartition("/")[2]), rendered.main)


@pytest.mark.upstream
@requires_shared
@pytest.mark.parametrize("crd", EVERY, ids=str)
@settings(max_examples=examples(200))
@given(spec=SPECS)
def test_real_crds_take_what_is_rendered(crd: UpstreamCRD, spec: dict[str, Any]) -> None:
    assert refused(spec, crd) == []


@settings(max_examples=examples(100))
@given(spec=SPECS)
def test_stand_in_takes_what_is_rendered(spec: dict[str, Any]) -> None:
    assert refused(spec, standin("dynamo")) == []
