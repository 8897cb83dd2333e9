"""Which provider installed what: one record for each provider, and a readable list of all."""

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
    """files: paths below python-packages that the provider needs, its own and those that it shares.

    Written before the first of them is moved, so that a killed installation can be attributed to its provider.
    """

    provider_id: str
    image: str
    order: int
    distributions: tuple[Distribution, ...]
    files: tuple[str, ...]


def text(record: Record) -> str:
    """The record's file."""
    value = {
        "providerId": record.provider_id,
        "image": record.image,
        "order": record.order,
        "distributions": [
            {"name": one.name, "version": one.version, "requires": list(one.requires)}
            for one in record.distributions
        ],
        "files": list(record.files),
    }
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def read_all(metadata: Path) -> dict[str, Record]:
    """Every record on the volume by provider id, in the order of installation. Raises MissingMetadata, OSError."""
    found = [_read(path) for path in sorted(metadata.glob(f"*/{layout.RECORD_FILE}"))]
    return {one.provider_id: one for one in sorted(found, key=lambda one: (one.order, one.provider_id))}


def manifest(records: Iterable[Record]) -> str:
    """installed-packages.txt: `name==version`, and the provider that installed it (FR-024a)."""
    lines = [
        f"{one.name}=={one.version}  # provider {record.provider_id}, image {record.image}\n"
        for record in records
        for one in record.distributions
    ]
    return "".join(lines)


def owners(records: Mapping[str, Record]) -> dict[str, Record]:
    """Path to the first provider that needs the file."""
    found: dict[str, Record] = {}
    for record in records.values():
        for path in record.files:
            found.setdefault(path, record)
    return found


def _read(path: Path) -> Record:
    try:
        value = json.loads(path.read_bytes())
        provider_id = value["providerId"]
        return Record(
            provider_id=provider_id,
            image=value["image"],
            order=value["order"],
            distributions=tuple(
                Distribution(one["name"], one["version"], tuple(one["requires"]), provider_id)
                for one in value["distributions"]
            ),
            files=tuple(value["files"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise Failure(
            Code.MissingMetadata, f"{path} is damaged: {error}", provider_id=path.parent.name
        ) from None
