"""Records which provider installed which files: one record for each provider, and a readable list of all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from llamastack_providers import layout
from llamastack_providers.dependencies import Distribution
from llamastack_providers.errors import Code, Failure


@dataclass(frozen=True, slots=True)
class Record:
    """The record of one provider.

    It is written before the first file is moved, so that a killed installation can be attributed to its
    provider.

    Attributes:
        provider_id: The provider's id.
        image: Its image.
        order: Its position in the order of installation.
        distributions: The packages of its image.
        files: Paths below python-packages that the provider needs, its own and those that it shares.
    """

    provider_id: str
    image: str
    order: int
    distributions: tuple[Distribution, ...]
    files: tuple[str, ...]


def text(record: Record) -> str:
    """Return the content of the record's file."""
    value = {
        "providerId": record.provider_id,
        "image": record.image,
        "order": record.order,
        "distributions": [
            {"name": package.name, "version": package.version, "requires": list(package.requires)}
            for package in record.distributions
        ],
        "files": list(record.files),
    }
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def read_all(metadata: Path) -> dict[str, Record]:
    """Return every record on the volume by provider id, in the order of installation.

    Raises:
        Failure: MissingMetadata.
        OSError: A file is not readable.
    """
    records = [_read(path) for path in sorted(metadata.glob(f"*/{layout.RECORD_FILE}"))]
    return {
        item.provider_id: item for item in sorted(records, key=lambda item: (item.order, item.provider_id))
    }


def manifest(records: Iterable[Record]) -> str:
    """Return the content of installed-packages.txt (FR-024a).

    A line has `name==version`, and the provider that installed the package.
    """
    lines = [
        f"{package.name}=={package.version}  # provider {record.provider_id}, image {record.image}\n"
        for record in records
        for package in record.distributions
    ]
    return "".join(lines)


def owners(records: Mapping[str, Record]) -> dict[str, Record]:
    """Return the first provider that needs each path."""
    owner_of: dict[str, Record] = {}
    for record in records.values():
        for path in record.files:
            owner_of.setdefault(path, record)
    return owner_of


def _read(path: Path) -> Record:
    try:
        value = json.loads(path.read_bytes())
        provider_id = value["providerId"]
        return Record(
            provider_id=provider_id,
            image=value["image"],
            order=value["order"],
            distributions=tuple(
                Distribution(item["name"], item["version"], tuple(item["requires"]), provider_id)
                for item in value["distributions"]
            ),
            files=tuple(value["files"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise Failure(
            Code.MissingMetadata, f"{path} is damaged: {error}", provider_id=path.parent.name
        ) from None
