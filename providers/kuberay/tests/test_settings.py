"""Flags of the provider, and the Ray version of an image."""

from __future__ import annotations

import argparse

import pytest

from kubefoundry_kuberay.settings import DEFAULT_IMAGE, Settings, add_arguments, from_arguments


def parsed(*flags: str, **images: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(flags, argparse.Namespace(default_images=images))


@pytest.mark.parametrize(
    ("settings", "stated", "image", "version"),
    [
        (Settings(mirror="r.example/kf"), None, f"r.example/kf/{DEFAULT_IMAGE}", "2.56.0"),
        (Settings(mirror="r.example/kf"), "own:1", "own:1", None),
        (Settings("team/engine:1", mirror="r.example/kf"), None, "team/engine:1", None),
    ],
)
def test_mirror_replaces_only_the_registry_of_rays_own_image(
    settings: Settings, stated: str | None, image: str, version: str | None
) -> None:
    assert settings.image(stated) == image
    assert settings.ray_version_of(image) == version
    assert settings.is_for("amd.com/gpu", None) is (settings.default_image != DEFAULT_IMAGE)


@pytest.mark.parametrize(
    ("image", "version"),
    [
        (DEFAULT_IMAGE, "2.56.0"),
        ("rayproject/ray:2.54.1", "2.54.1"),
        ("example.com:5000/team/ray-llm:2.52.0-py311-cu128@sha256:0123", "2.52.0"),
        ("ray:2.52.0", "2.52.0"),
        ("team/engine:2.52.0", "2.60.0"),
        ("team/array:2.52.0", "2.60.0"),
        ("ray/engine:2.52.0", "2.60.0"),
        ("rayproject/ray-llm:latest", "2.60.0"),
        ("rayproject/ray-llm:2.52", "2.60.0"),
        ("rayproject/ray-llm@sha256:0123", "2.60.0"),
        ("rayproject/ray-llm", "2.60.0"),
    ],
)
def test_ray_version_of_an_image(image: str, version: str) -> None:
    assert Settings(ray_version="2.60.0").ray_version_of(image) == version


def test_flags() -> None:
    assert from_arguments(parsed()) == Settings(DEFAULT_IMAGE, None)
    assert from_arguments(parsed("--ray-version", "2.55.0", vllm="team/engine:1")) == Settings(
        "team/engine:1", "2.55.0"
    )


def test_default_image_of_another_engine_is_refused() -> None:
    with pytest.raises(ValueError, match="--default-image sglang=…: KubeRay runs engine vllm only"):
        from_arguments(parsed(sglang="x"))


def test_malformed_ray_version_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("--ray-version", "latest")

    assert "'latest' is not a Ray version such as 2.56.0" in capsys.readouterr().err
