"""Paths of requests to the API server."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Kind
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._cluster.requests import path


@pytest.mark.parametrize("dots", [".", ".."])
@pytest.mark.parametrize("part", ["version", "namespace", "name"])
def test_path_has_no_step_that_leads_to_another(part: str, dots: str) -> None:
    """An HTTP client removes such a step: `namespaces/../pods` is the list of all pods."""
    kind: Kind = replace(MODEL_DEPLOYMENTS, version=dots) if part == "version" else MODEL_DEPLOYMENTS
    names = {"namespace": "models", "name": "m"} | ({} if part == "version" else {part: dots})

    with pytest.raises(ApiError) as refused:
        path(kind, **names)

    assert refused.value.rejected
    assert f"'{dots}'" in refused.value.message


def test_path_keeps_dots_inside_a_name() -> None:
    assert path(MODEL_DEPLOYMENTS, "models", "a..b").endswith("/namespaces/models/modeldeployments/a..b")
