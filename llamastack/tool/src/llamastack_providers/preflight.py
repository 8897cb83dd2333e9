"""Implements `preflight`: checks in the server's container that it can load every external provider.

It runs before the server starts. The order is platform, dependencies, modules that shadow others, imports one by
one, types. The first error ends the checks, and no provider's code runs before everything else is checked. Only the
effective run.yaml is written.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from llamastack_providers import (
    culprit,
    layout,
    loading,
    provider_types,
    readiness,
    record,
    redaction,
    shadowing,
    site,
    yaml_file,
)
from llamastack_providers.errors import Code, Failure
from llamastack_providers.layout import Layout
from llamastack_providers.loading import Loaded, Probe
from llamastack_providers.provider_types import Typed
from llamastack_providers.record import Record
from llamastack_providers.redaction import Redaction
from llamastack_providers.request import Preflight

_MOST_TOKEN_BYTES: Final = 64 * 2**10
"""The most bytes of a token that are read. A ServiceAccount's token has about 1 KiB."""

Entry = dict[str, Any]
Entries = list[tuple[str, Entry]]

IN_LOG: Final = "what the provider says is in the container's log"


@dataclass(frozen=True, slots=True)
class Passed:
    """The result of a preflight without errors.

    Attributes:
        providers: How many were checked.
        loading: Seconds that loading them took, llama-stack's own import included.
        warnings: Texts for the pod's status.
    """

    providers: int
    loading: float
    warnings: list[str]


@dataclass(slots=True)
class Check:
    """One run of preflight.

    Attributes:
        places: Paths of the container.
        request: The operator's input.
        doing: Called before a provider runs, with the message to report if the process dies there.
        config: The run configuration.
        records: Records of the installed providers.
        entries: Section and entry of each provider that has a module.
        replacing: Providers with packages that the distribution has, too.
    """

    places: Layout
    request: Preflight
    doing: Callable[[Failure], None]
    config: Any
    records: dict[str, Record] = field(default_factory=dict)
    entries: Entries = field(default_factory=list)
    replacing: list[str] = field(default_factory=list)

    def run(self, content: bytes) -> Passed:
        """Check the providers, and write the effective run.yaml.

        Args:
            content: The bytes of run.yaml, which are kept if no type changes.

        Raises:
            Failure: A provider cannot be loaded.
            OSError: A file is not readable or writable.
        """
        self.records = record.read_all(self.places.metadata)
        self.entries = list(_with_module(self.config))
        warnings = self._packages()
        started = time.monotonic()
        loaded = self._load() if self.entries else []
        seconds = time.monotonic() - started
        is_changed = False
        for (section, entry), spec in zip(self.entries, loaded, strict=True):
            warnings += mismatches(section, entry, spec)
            is_changed |= entry.get("provider_type") != spec.provider_type or spec.takes_token
            # The runtime value wins (sources §5.2 "Comparison Behavior").
            entry["provider_type"] = spec.provider_type
            if spec.takes_token:
                token_file = self._token_file(entry)
                entry["config"] = {**(entry.get("config") or {}), "token_file": token_file}
        self._wait()
        effective = self.places.effective
        effective.parent.mkdir(parents=True, exist_ok=True)
        effective.write_bytes(yaml_file.dump(self.config).encode() if is_changed else content)
        # The file exists only if an earlier server of this pod has ended.
        if self.entries and self.places.started.exists():
            self._start()
        self.places.started.touch()
        return Passed(len(self.entries), seconds, warnings)

    def _packages(self) -> list[str]:
        """Return warnings from the files alone.

        Raises:
            Failure: A package does not fit this container, or replaces a module.
            OSError: A file is not readable.
        """
        packages = self.places.packages
        for problem in site.foreign(packages, self.records):
            raise problem
        installed = site.read(packages, self.records)
        for problem in site.findings(installed):
            raise problem
        for problem in shadowing.of_the_server(packages, self.records, site.base_path(packages)):
            raise problem
        owners = {
            package.owner
            for name, package in installed.provided.items()
            if name in installed.base and package.owner
        }
        self.replacing = sorted(owners)
        return site.shadowed(installed)

    def _load(self) -> list[Loaded]:
        loaded = []
        with self._probe() as probe:
            if problem := provider_types.find_clash(self._typed(), probe.types):
                raise problem
            for section, entry in self.entries:
                provider_id, module = loading.about(entry)
                print(f"Loading provider '{provider_id}' ({module})", flush=True)
                text = "the container was ended while the provider was loaded"
                self.doing(self.named(Failure(Code.ProbeDied, text, provider_id=provider_id, module=module)))
                loaded.append(probe.load(section, entry, self._token_file(entry)))
            types = [item.provider_type for item in loaded]
            if problem := provider_types.find_clash(self._typed(types), probe.types):
                raise problem
        return loaded

    def _token_file(self, entry: Entry) -> str:
        """Return the path of the token for the provider's service, empty if it has none."""
        own_service = self.request.services.get(str(entry.get("provider_id")))
        return own_service.token_file if own_service else ""

    def _wait(self) -> None:
        """Wait until the required services are ready.

        Raises:
            Failure: ServiceNotReached.
        """
        # All services start together, so their times to start begin together.
        began = time.monotonic()
        for provider_id, item in self.request.services.items():
            if item.required:
                text = f"the container was ended while it waited for {readiness.target(item)}"
                self.doing(self.named(Failure(Code.ServiceNotReached, text, provider_id=provider_id)))
                print(f"Waiting for the service of provider '{provider_id}'", flush=True)
                readiness.wait(provider_id, item, began + item.start_seconds, self.places)

    @contextlib.contextmanager
    def _probe(self) -> Iterator[Probe]:
        """Open a probe.

        Raises:
            Failure: ServerBroken, if llama-stack can be imported, but not together with the providers' packages.
        """
        text = "the container was ended while llama-stack was imported"
        self.doing(Failure(Code.ServerMissing, text))
        try:
            with loading.open_probe(self.places.packages, self.request.seconds) as probe:
                yield probe
        except Failure as failure:
            if failure.code is not Code.ServerMissing:
                raise
            with loading.open_probe(None, self.request.seconds):
                pass
            guilty = culprit.find(f"{failure.reason}\n{failure.detail}", self.places.packages, self.records)
            failure.code, failure.quoted = Code.ServerBroken, True
            failure.provider_id = guilty or (self.replacing[0] if len(self.replacing) == 1 else "")
            if not failure.provider_id and self.replacing:
                failure.reason += f"; packages of {', '.join(self.replacing)} replace the distribution's"
            raise

    def _start(self) -> None:
        """Try to start the server, because the last server of this pod has ended.

        Only a provider's failure counts.
        """
        print("The last server of this pod exited: trying to start it with all providers", flush=True)
        with self._probe() as probe:
            text = "the container was ended during a trial start of the server"
            self.doing(Failure(Code.StartFailed, text))
            try:
                probe.start(self.places.effective, len(self.entries))
            except Failure as failure:
                guilty = culprit.find(failure.detail, self.places.packages, self.records)
                turn = failure.provider_id if failure.provider_id in self.records else ""
                failure.provider_id = guilty or turn
                if failure.provider_id:
                    raise
                print(f"The trial start failed, but not in a provider: {failure.reason}", flush=True)

    def _typed(self, types: list[str] | None = None) -> list[Typed]:
        """Return the entries with their stated types, or corrected ones."""
        used_types = types or [str(entry.get("provider_type")) for _, entry in self.entries]
        images = {name: provider_record.image for name, provider_record in self.records.items()}
        return [
            Typed(section, type_, provider_id, module, images.get(provider_id, ""))
            for (section, entry), type_ in zip(self.entries, used_types, strict=True)
            for provider_id, module in (loading.about(entry),)
        ]

    def named(self, failure: Failure) -> Failure:
        """Add image and module of its provider to the failure, if they are known."""
        provider_record = self.records.get(failure.provider_id)
        failure.image = failure.image or (provider_record.image if provider_record else "")
        modules = [
            str(entry["module"])
            for _, entry in self.entries
            if entry.get("provider_id") == failure.provider_id
        ]
        failure.module = failure.module or (modules[0] if modules else "")
        return failure


def run(places: Layout, request: Preflight, doing: Callable[[Failure], None]) -> Passed:
    """Run preflight, and write the effective run.yaml.

    Raises:
        Failure: A provider cannot be loaded.
        OSError: A file is not readable or writable.
    """
    path = places.config / "run.yaml"
    try:
        config = yaml_file.load(path, f"{layout.CONFIG}/run.yaml")
    except FileNotFoundError:
        raise Failure(Code.BaseConfigMissing, f"{layout.CONFIG}/run.yaml does not exist") from None
    hidden = redacted(config, request, places)
    check = Check(places, request, doing, config)
    try:
        passed = check.run(path.read_bytes())
    except Failure as failure:
        _publish(check.named(failure), hidden)
        raise
    return Passed(passed.providers, passed.loading, [hidden.clean(warning) for warning in passed.warnings])


def redacted(config: Any, request: Preflight, places: Layout) -> Redaction:
    """Return the values that messages must not contain.

    They are those of variables in the configuration or from a Secret, the token of the ServiceAccount, and the tokens
    for services.
    """
    names = redaction.named_in(yaml_file.dump(config), request.secret)
    values = {name: os.environ.get(name, "") for name in names}
    # The kubelet's file is a link to its latest version.
    token = _token(Path(os.path.realpath(places.at(layout.TOKEN))))
    files = [item.token_file for item in request.services.values() if item.token_file]
    service_tokens = [_token(places.at(file)) for file in files]
    return Redaction(values, frozenset(request.secret), request.unknown, token, service_tokens)


def _token(path: Path) -> str:
    """Return the content of a file, empty if it cannot be read or is a link."""
    try:
        # A pipe would block without O_NONBLOCK.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as token:
            return token.read(_MOST_TOKEN_BYTES).decode(errors="replace").strip()
    except OSError:
        return ""


def _publish(failure: Failure, hidden: Redaction) -> None:
    """Redact secrets. If some cannot be found, print a provider's words only to the log."""
    failure.reason, failure.detail = hidden.clean(failure.reason), hidden.clean(failure.detail)
    if failure.quoted and hidden.blind:
        print(f"{failure.reason}\n{failure.detail}", flush=True)
        failure.reason, failure.detail = f"{IN_LOG}, because {hidden.blind}", ""


def mismatches(section: str, entry: Entry, loaded: Loaded) -> Iterator[str]:
    """Yield a text for each field in which metadata and get_provider_spec() differ.

    The format is that of sources §5.2 "Warning Format". A different `api` is an error (ApiDiffers), because the
    server would crash.
    """
    stated_type = entry.get("provider_type")
    if stated_type != loaded.provider_type:
        yield (
            "Provider metadata mismatch (non-blocking)\n\n"
            f"Provider: {entry['provider_id']}\n\n"
            "Field: provider_type\n"
            f"  Metadata ({layout.SPEC_FILE}): {stated_type}\n"
            f"  Runtime (get_provider_spec()): {loaded.provider_type}\n"
            f"  Using: {loaded.provider_type} (runtime value)"
        )


def _with_module(config: Any) -> Iterator[tuple[str, Entry]]:
    """Yield the providers that the server loads from a module. Built-in ones are the server's own."""
    for section, entries in (config.get("providers") or {}).items():
        for entry in entries or []:
            if entry.get("module"):
                yield section, entry
