"""Write a new provider's package: examples/provider with other names. The example is complete and tested."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_cli.new.upstream_crd import UpstreamCrd, content, literal, needed_fields, refused
from kubefoundry_sdk._api import foreign_text

HERE: Final = Path(__file__).parent
NAME: Final = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?")
"""A provider's name: part of the name of a Python package, of a kind and of a ServiceAccount."""

TAKEN: Final = ("y", "n", "yes", "no", "on", "off", "true", "false", "null")
"""Words that YAML does not read as text. Users write a provider's name into `spec.provider.name`."""

GROUP: Final = re.compile(r"(?=.{1,100}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+")
"""A domain of at least two parts."""

LIFE: Final = "tests/test_life.py"
NEEDED: Final = re.compile(r"^NEEDED: Final = tuple\(.*?^\)", re.M | re.S)
NO_PLACE: Final = re.compile(r"^NO_PLACE: Final = \(.*?^\)", re.M | re.S)
FLAGS: Final = re.compile(r"^    flags = dict.*?(?=^    image = )", re.M | re.S)
CONTENT: Final = re.compile(r"^    content = \{.*?^    \}", re.M | re.S)
"""Parts of the example's provider that depend on the fields of the CRD."""

KEPT: Final = (
    "pyproject.toml",
    "README.md",
    "Dockerfile",
    "manifest.yaml",
    "cases.yaml",
    "widgets.crd.yaml",
    "src",
    "tests",
)


def files(name: str, group: str, crd: UpstreamCrd | None = None) -> dict[str, str]:
    """Return path and text of each file of a new provider.

    Args:
        name: The provider's name.
        group: The API group of its upstream kind.
        crd: The CRD of its upstream kind, None for an imaginary one.

    Raises:
        Failure: The name or the group is invalid.
    """
    _check_names(name, group)
    title = "".join(part.capitalize() for part in name.split("-"))
    kind, plural, version = (crd.kind, crd.plural, crd.version) if crd else (title, name, "v1")
    words = {
        "kubefoundry_widgets": f"kubefoundry_{name.replace('-', '_')}",
        "WIDGETS": "PROVIDER",
        "Widgets": title,
        "widgets.crd.yaml": f"{name}.crd.yaml",
        "widgets.example.com": f"{plural}.{group}",
        # permissions on the upstream kind
        "  - example.com\n  resources:\n  - widgets\n": f"  - {group}\n  resources:\n  - {plural}\n",
        '"widgets", "Widget"': f'"{plural}", "{kind}"',
        "widgets": name,
        "Widget": kind,
        "singular: widget": f"singular: {kind.lower()}",
        # a kind may be a word of Python
        "widget": "upstream_object",
        "example.com/v1": f"{group}/{version}",
        '{"v1": Fields': f'{{"{version}": Fields',
        "example.com": group,
    }
    pattern = re.compile("|".join(map(re.escape, words)))

    def renamed(text: str) -> str:
        return pattern.sub(lambda match: words[match[0]], text)

    contents = {renamed(path): renamed(text) for path, text in _template()}
    if crd:
        # The test of a model's life needs the example's status.
        contents = {path: _fitted(text, crd) for path, text in contents.items() if path != LIFE}
    return contents | ({f"{name}.crd.yaml": crd.text} if crd else {})


def _check_names(name: str, group: str) -> None:
    """Raise Failure if the name of the provider or the API group is invalid."""
    if not NAME.fullmatch(name) or name in TAKEN:
        raise Failure(
            f"'{foreign_text.shown(name)}' cannot be a provider's name: use at most 40 lower-case letters, digits "
            "and inner dashes, a letter first, and no word that YAML reads as true, false or null",
            Exit.USAGE,
        )
    if not GROUP.fullmatch(group):
        raise Failure(
            f"'{foreign_text.shown(group)}' cannot be an API group: it is a domain, like serving.example.com",
            Exit.USAGE,
        )


def _fitted(text: str, crd: UpstreamCrd) -> str:
    """Return a file of the example with the fields of a CRD."""
    first = next(iter(crd.filled), next(iter(crd.properties)))
    parts = [
        (NEEDED, needed_fields(crd)),
        (NO_PLACE, refused(crd)),
        (CONTENT, content(crd)),
        (re.compile(r'(?<=\["properties"\])\["env"\]'), f"[{literal(first)}]"),
        (re.compile(r'"spec\.env"'), literal(f"spec.{first}")),
    ]
    if "flags" not in crd.filled:
        parts.append((FLAGS, ""))
    for pattern, code in parts:
        # A function, because the code may hold backslashes, which a template of `sub` interprets.
        text = pattern.sub(partial(_constant, code), text)
    return text


def _constant(code: str, _: re.Match[str]) -> str:
    return code


def write(folder: Path, texts: dict[str, str]) -> None:
    """Write the files. Raises Failure if the folder is not empty, or cannot be written."""
    try:
        if folder.exists() and any(folder.iterdir()):
            raise Failure(f"{folder} is not empty: name a folder that does not exist", Exit.USAGE)
        for path, text in texts.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Failure(f"cannot write {folder}: {error}") from error


def _template() -> Iterator[tuple[str, str]]:
    root = _root()
    for top in KEPT:
        paths = [root / top] if (root / top).is_file() else sorted((root / top).rglob("*.*"))
        for file in paths:
            if file.is_file() and file.suffix != ".pyc":
                yield str(file.relative_to(root)), file.read_text(encoding="utf-8")


def _root() -> Path:
    """Return the folder of the files: beside this module in a wheel, the example in a checkout."""
    packed = HERE / "provider"
    return packed if packed.is_dir() else HERE.parents[3] / "examples" / "provider"
