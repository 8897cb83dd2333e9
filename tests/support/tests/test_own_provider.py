"""Tests the option of the demo that adds a provider of the user's own."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from llamastack_providers.layout import PROVIDER, SPEC_FILE
from pods import own_provider
from pods.demonstration import distribution_with
from support.provider_images import image


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that can be installed, with a colon in its name."""
    return image(tmp_path / "my:own", "acme-mine")


@pytest.mark.parametrize("api", ["safety", "vectorIo", "vector_io"])
def test_own_provider_is_added_to_section_of_its_api(folder: Path, tmp_path: Path, api: str) -> None:
    own = own_provider.parse(f"{folder}:mine:{api}")

    built = own.image(tmp_path / "work")
    server = distribution_with("hi", [own])["spec"]["server"]

    section = "safety" if api == "safety" else "vectorIo"
    assert server["externalProviders"][section][-1] == {"providerId": "mine", "image": built.name}
    assert (built.layers[0] / PROVIDER.lstrip("/") / SPEC_FILE).read_bytes() == (
        folder / SPEC_FILE
    ).read_bytes()
    assert [path.name for path in (built.layers[0] / PROVIDER.lstrip("/") / "packages").iterdir()] == [
        "acme_mine-1.0.0-py3-none-any.whl"
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mine:inference", "is not FOLDER:ID:API"),
        ("{folder}::inference", "is not FOLDER:ID:API"),
        (":mine:inference", "is not FOLDER:ID:API"),
        ("{folder}:mine:music", "'music' is not one of inference"),
        ("{folder}/packages:mine:inference", "cannot be installed"),
    ],
)
def test_unusable_own_provider_is_rejected(folder: Path, text: str, expected: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=expected):
        own_provider.parse(text.format(folder=folder))
