"""`preflight`: in the server's own container, before the server, whether it can load every external provider.

Order: platform, dependencies, imports; the first error ends it. Reads only, but for the effective run.yaml.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from llamastack_providers import layout, loading, record, site, yaml_file
from llamastack_providers.errors import Code, Failure
from llamastack_providers.layout import Layout
from llamastack_providers.loading import Loaded
from llamastack_providers.record import Record

_VARIABLE: Final = re.compile(r"\$\{env\.([A-Z0-9_]+)")
_SHORTEST_SECRET: Final = 4
"""A shorter value stands in too many words to be taken out of a text."""

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Passed:
    """providers: how many were checked. loading: seconds that their loading took, llama-stack's own included."""

    providers: int
    loading: float
    warnings: list[str]


def run(places: Layout) -> Passed:
    """Writes the effective run.yaml. Raises Failure, OSError."""
    path = places.config / "run.yaml"
    try:
        config = yaml_file.load(path, f"{layout.CONFIG}/run.yaml")
    except FileNotFoundError:
        raise Failure(Code.BaseConfigMissing, f"{layout.CONFIG}/run.yaml does not exist") from None
    try:
        return _checked(config, path, places)
    except Failure as failure:
        failure.reason, failure.detail = _public(failure.reason, config), _public(failure.detail, config)
        raise


def _checked(config: Any, path: Path, places: Layout) -> Passed:
    records = record.read_all(places.metadata)
    entries = list(_with_module(config))
    try:
        for problem in site.foreign(places.packages, records):
            raise problem
        here = site.read(places.packages, records)
        for problem in site.findings(here):
            raise problem
        warnings = site.shadowed(here)
        started = time.monotonic()
        loaded = list(loading.load(entries)) if entries else []
        seconds = time.monotonic() - started
    except Failure as failure:
        _name_provider(failure, entries, records)
        raise
    changed = False
    for (section, entry), found in zip(entries, loaded, strict=True):
        warnings += mismatches(section, entry, found)
        changed |= entry.get("provider_type") != found.provider_type
        # 000 "Comparison Behavior": the runtime value is used
        entry["provider_type"] = found.provider_type
    content = yaml_file.dump(config).encode() if changed else path.read_bytes()
    places.effective.parent.mkdir(parents=True, exist_ok=True)
    places.effective.write_bytes(content)
    return Passed(len(entries), seconds, [_public(one, config) for one in warnings])


def mismatches(section: str, entry: Entry, found: Loaded) -> Iterator[str]:
    """A text for each field in which metadata and get_provider_spec() differ (000 "Warning Format")."""
    for field, written, actual, used in (
        (
            "provider_type",
            entry.get("provider_type"),
            found.provider_type,
            f"{found.provider_type} (runtime value)",
        ),
        ("api", section, found.api, f"{section} (the section of run.yaml it stands in)"),
    ):
        if written != actual:
            yield (
                "Provider metadata mismatch (non-blocking)\n\n"
                f"Provider: {entry['provider_id']}\n\n"
                f"Field: {field}\n"
                f"  Metadata ({layout.SPEC_FILE}): {written}\n"
                f"  Runtime (get_provider_spec()): {actual}\n"
                f"  Using: {used}"
            )


def _with_module(config: Any) -> Iterator[tuple[str, Entry]]:
    """The providers that the server loads from a module; built-in ones are its own affair."""
    for section, entries in (config.get("providers") or {}).items():
        for entry in entries or []:
            if entry.get("module"):
                yield section, entry


def _name_provider(failure: Failure, entries: list[tuple[str, Entry]], records: dict[str, Record]) -> None:
    """Image and module of the provider that the failure is about, as far as they are known."""
    known = records.get(failure.provider_id)
    failure.image = failure.image or (known.image if known else "")
    modules = [entry["module"] for _, entry in entries if entry.get("provider_id") == failure.provider_id]
    failure.module = failure.module or (modules[0] if modules else "")


def _public(text: str, config: Any) -> str:
    """The text without the values of variables that the configuration names: they may come from a Secret."""
    for name in dict.fromkeys(_VARIABLE.findall(yaml_file.dump(config))):
        value = os.environ.get(name, "")
        if len(value) >= _SHORTEST_SECRET:
            for shown in (value, repr(value)[1:-1]):
                text = text.replace(shown, f"${{env.{name}}}")
    return text
