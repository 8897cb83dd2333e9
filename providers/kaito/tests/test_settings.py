"""The provider's flags."""

from __future__ import annotations

from argparse import ArgumentError, ArgumentParser

import pytest

from kubefoundry_kaito.settings import Provisioning, Settings, add_arguments, from_arguments
from kubefoundry_sdk._provider.upstream_kind import Schema


def parsed(*arguments: str) -> Settings:
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--default-image", dest="default_images", default={})
    add_arguments(parser)
    return from_arguments(parser.parse_args(arguments))


def test_default_settings_use_existing_nodes_and_no_image() -> None:
    assert parsed() == Settings(provisioning=None, images={})
    assert parsed().mode(None) == "byo"


@pytest.mark.parametrize(
    ("stated", "read", "mode"),
    [
        pytest.param(None, {}, "byo", id="neither is known"),
        pytest.param(None, {"provisioning": "auto"}, "auto", id="read"),
        pytest.param(None, {"provisioning": "byo"}, "byo", id="read the other way"),
        pytest.param("byo", {"provisioning": "auto"}, "byo", id="stated before read"),
        pytest.param("auto", {}, "auto", id="stated"),
    ],
)
def test_where_the_provisioning_mode_comes_from(
    stated: Provisioning | None, read: dict[str, str], mode: Provisioning
) -> None:
    assert Settings(provisioning=stated).mode(Schema("kaito.sh/v1beta1", discovered=read)) == mode


def test_flags_become_settings() -> None:
    settings = parsed(
        "--kaito-provisioning=auto", "--kaito-gpu-instance-type=g", "--kaito-cpu-instance-type=c"
    )

    assert settings == Settings(provisioning="auto", gpu_instance_type="g", cpu_instance_type="c", images={})


def test_variable_is_checked_like_the_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEFOUNDRY_KAITO_PROVISIONING", "sometimes")

    with pytest.raises(ArgumentError, match="'sometimes' is neither byo nor auto"):
        parsed()
