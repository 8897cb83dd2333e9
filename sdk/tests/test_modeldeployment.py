from typing import Any

import pytest
from hypothesis import given

from kubefoundry_sdk._api import validation
from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk._api.providerconfig import ProviderConfigSpec, ProviderConfigStatus
from kubefoundry_sdk._api.schema import structural
from kubefoundry_sdk._api.status import ModelDeploymentStatus
from kubefoundry_sdk.testing.generated import specs
from support.schema_values import values


@given(specs())
def test_spec_is_dumped_as_it_was_written(spec: dict[str, Any]) -> None:
    typed = ModelDeploymentSpec.model_validate(spec)

    assert typed.model_dump(by_alias=True, exclude_unset=True) == spec


@given(specs())
def test_typed_defaults_equal_those_of_the_crd(spec: dict[str, Any]) -> None:
    complete = ModelDeploymentSpec.model_validate(validation.default(spec))

    assert complete == ModelDeploymentSpec.model_validate(spec)


@given(values(structural(ModelDeploymentStatus)))
def test_status_is_dumped_as_it_was_written(status: dict[str, Any]) -> None:
    typed = ModelDeploymentStatus.model_validate(status)

    assert typed.model_dump(by_alias=True, exclude_unset=True) == status


@pytest.mark.parametrize("model", [ProviderConfigSpec, ProviderConfigStatus])
def test_provider_config_is_dumped_as_it_was_written(
    model: type[ProviderConfigSpec] | type[ProviderConfigStatus],
) -> None:
    @given(values(structural(model)))
    def dumped(value: dict[str, Any]) -> None:
        assert model.model_validate(value).model_dump(by_alias=True, exclude_unset=True) == value

    dumped()


@pytest.mark.parametrize(
    ("model", "served"),
    [
        ({"id": "meta-llama/Llama-3.1-8B"}, "Llama-3.1-8B"),
        ({"id": "gpt2"}, "gpt2"),
        ({"id": "a/b", "servedName": "c"}, "c"),
        ({"id": "a/b", "servedName": ""}, "b"),
        ({}, None),
        ({"source": "custom", "id": "a/b", "servedName": "c"}, None),
    ],
)
def test_served_name_is_computed(model: dict[str, Any], served: str | None) -> None:
    assert ModelDeploymentSpec.model_validate({"model": model}).served_name == served


@pytest.mark.parametrize(("resources", "count"), [({}, 0), ({"gpu": {}}, 0), ({"gpu": {"count": 2}}, 2)])
def test_gpus_omitted_are_none(resources: dict[str, Any], count: int) -> None:
    assert ModelDeploymentSpec.model_validate({"resources": resources}).gpu_count == count
