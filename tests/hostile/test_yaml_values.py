"""YAML whose values are not what their tags or looks say: every reader of others' YAML answers in its own way."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Final

import pytest
import yaml

from kubefoundry_conformance import cases
from kubefoundry_kuberay.serve_config import as_yaml
from kubefoundry_llamastack import distribution
from kubefoundry_sdk._api import foreign_yaml
from kubefoundry_sdk._cluster.credentials import NoCredentials, context_namespace
from llamastack_providers import yaml_file
from llamastack_providers.errors import Failure

TAGS: Final = (
    *("", "!", "!x ", "!!bool ", "!!int ", "!!float ", "!!null ", "!!str ", "!!timestamp ", "!!binary "),
    *(
        "!!set ",
        "!!omap ",
        "!!pairs ",
        "!!map ",
        "!!seq ",
        "!!merge ",
        "!!value ",
        "!!python/name:os.system ",
    ),
)
VALUES: Final = (
    *(
        "x",
        '""',
        "'2'",
        "~",
        "²",
        "٣",
        "1_0",
        "0x",
        "0o9",
        "-",
        "+.",
        ".inf",
        "-.INF",
        ".nan",
        "1e999",
        "=",
        "<<",
    ),
    *(
        "9" * 310,
        "9" * 5000,
        "0x" + "f" * 5000,
        "0b" + "1" * 5000,
        "1" + ":1" * 3000,
        "1" + ":59" * 3000 + ".5",
    ),
    *("2001-99-99", "2001-01-01T99:99:99Z", "0000-01-01", "2001-01-01 00:00:00 +99:99", '"\\ud800"', '"\\0"'),
    *("[]", "{}", "[a]", "{a: b}", "[[a]]", "[{a: b, c: d}]", "{? [a] : b}", "{? {a: b} : c}"),
)
PLACES: Final = ("{}", "a: {}", "- {}", "? {}\n: b", "{{a: {}}}")


def file_of(text: str, folder: Path) -> Path:
    file = folder / "file.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def decoded(text: str, folder: Path) -> None:
    with suppress(foreign_yaml.Unreadable):
        value = foreign_yaml.decode(text)
        as_yaml({"content": value}) if not _odd(value) else yaml.safe_dump(value)


def _odd(value: object) -> bool:
    """Whether it holds what no field of ours is ever written with, but may stay in somebody's text."""
    if isinstance(value, dict):
        return any(map(_odd, (*value, *value.values())))
    return (
        any(map(_odd, value)) if isinstance(value, list) else not isinstance(value, str | int | float | None)
    )


def given(text: str, folder: Path) -> None:
    with suppress(foreign_yaml.Unreadable):
        foreign_yaml.document(text)


def case(text: str, folder: Path) -> None:
    with suppress(cases.Unusable):
        cases.document_of(file_of(text, folder))
    with suppress(cases.Unusable):
        cases.documents_of(file_of(text, folder))


def configuration(text: str, folder: Path) -> None:
    distribution.read({"metadata": {}, "data": {"image-overrides": text, "featureFlags": text}})


def kubeconfig(text: str, folder: Path) -> None:
    with suppress(NoCredentials):
        context_namespace(str(file_of(text, folder)))


def distribution_file(text: str, folder: Path) -> None:
    with suppress(Failure):
        yaml_file.load(file_of(text, folder), "run.yaml")


READERS: Final[dict[str, Callable[[str, Path], None]]] = {
    "a field": decoded,
    "the tool": given,
    "the conformance kit": case,
    "the LlamaStack operator's configuration": configuration,
    "a kubeconfig": kubeconfig,
    "a provider's configuration": distribution_file,
}


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_yaml_value_is_read_or_refused_as_by_the_reference(reader: str, tmp_path: Path) -> None:
    for tag, value, place in product(TAGS, VALUES, PLACES):
        READERS[reader](place.format(tag + value), tmp_path)
