"""Find the edit of one field that would make the selector choose a provider, or the provider accept the model.

The functions of the selector and of the providers judge each edit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kubefoundry_cli import upstream
from kubefoundry_cli.selection import foreseen, selected_provider, with_spec
from kubefoundry_cli.spec_path import ABSENT, with_value
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._api.validation import default, schema, validate
from kubefoundry_sdk._provider.contract import Provider as Package
from kubefoundry_selector.candidate import Provider

Edit = tuple[str, Any]
"""A path below the spec and its new value, None to remove it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a provider that is not chosen.

    Attributes:
        provider: The provider's name.
        accepts: Whether it would run the model if it were named, None if its package is not installed.
        refusals: Why it would refuse the model.
        edits: The edit of one field with which it is chosen, None if there is no such edit. If `by_rules` is false,
            the edit with which it accepts the model, empty if it has no refusals.
        by_rules: Whether rules may choose it. They may not if it has none, or if the spec names a provider.
        text: The verdict in one line.
    """

    provider: str
    accepts: bool | None
    refusals: tuple[str, ...]
    edits: tuple[Edit, ...] | None
    by_rules: bool
    text: str

    def to_json(self) -> dict[str, Any]:
        """Return the verdict for `-o json`."""
        return {**asdict(self), "edits": None if self.edits is None else [list(edit) for edit in self.edits]}


def verdicts(
    obj: Object, registered: Sequence[Provider], packages: Mapping[str, Package], *, chosen: str | None
) -> list[Verdict]:
    """Return a verdict on each registered provider but the chosen one, by name.

    Args:
        obj: A valid ModelDeployment with defaults.
        registered: The registered providers.
        packages: The installed packages.
        chosen: The provider that is not judged.
    """
    return [
        _verdict(obj, provider, registered, packages)
        for provider in sorted(registered, key=lambda provider: provider.name)
        if provider.name != chosen
    ]


def _verdict(
    obj: Object, provider: Provider, registered: Sequence[Provider], packages: Mapping[str, Package]
) -> Verdict:
    package = packages.get(provider.name)
    refusals = upstream.problems(package, obj, None) if package else ()
    accepts = not refusals if package else None
    by_rules = bool(provider.rules) and not LiveModelDeployment(obj).requested_provider
    edits = _edit(obj, provider, registered, packages, by_rules) if by_rules or refusals else ()
    how = "; ".join(filter(None, (_change(edits, by_rules), _naming(provider, refusals, accepts, by_rules))))
    return Verdict(
        provider.name,
        accepts,
        refusals,
        edits,
        by_rules,
        f"{provider.name}: {how or 'selected only by name'}",
    )


def _change(edits: Sequence[Edit] | None, by_rules: bool) -> str:
    """Describe the edit that changes the choice; empty if no edit is needed."""
    if edits:
        return f"{'selected' if by_rules else 'would accept it'} with {_words(edits[0])}"
    return "cannot be selected by changing one field" if by_rules else ""


def _naming(provider: Provider, refusals: Sequence[str], accepts: bool | None, by_rules: bool) -> str:
    """Describe the answer of a provider that the spec names; empty if it is unknown and needs no explanation."""
    if provider.denied:
        return provider.denied
    if refusals:
        return f"would refuse it if named: {'; '.join(refusals)}"
    if accepts:
        return "would accept it if named"
    if provider.rules and not by_rules:
        return "its package is not installed with this command, so whether it accepts is unknown"
    return ""


def _edit(
    obj: Object,
    provider: Provider,
    registered: Sequence[Provider],
    packages: Mapping[str, Package],
    by_rules: bool,
) -> tuple[Edit] | None:
    package = packages.get(provider.name)
    for edit in _edits(obj["spec"]):
        spec = edited(obj["spec"], [edit])
        if validate(spec):
            continue
        other = with_spec(obj, default(spec))
        if package and upstream.problems(package, other, None):
            continue
        if not by_rules or selected_provider(foreseen(other, registered, packages)) == provider.name:
            return (edit,)
    return None


def _edits(spec: Object) -> Iterator[Edit]:
    """Yield the edits that people make: the engine, GPU or not, the mode, an image, and leaving a field out."""
    properties = schema()["properties"]
    for engine in properties["engine"]["properties"]["type"]["enum"]:
        if engine != spec["engine"].get("type"):
            yield "engine.type", engine
    gpus = spec["resources"].get("gpu", {}).get("count", 0)
    for count in (0, 1):
        if count != gpus:
            yield "resources.gpu.count", count
    if not spec.get("image"):
        yield "image", "registry.example/image:tag"
    yield from _removals(spec)


def _removals(spec: Object) -> Iterator[Edit]:
    """Yield the removal of each optional field."""
    for part in ("resources", "engine", "scaling"):
        for field in spec.get(part, {}):
            if (part, field) not in (("engine", "type"), ("resources", "gpu")):
                yield f"{part}.{field}", None
    for field in spec:
        if field not in ("model", "engine", "resources", "serving", "scaling", "provider"):
            yield field, None


def edited(spec: Object, edits: Sequence[Edit]) -> Object:
    """Return a copy with the edits made."""
    for path, value in edits:
        spec = with_value(spec, path.split("."), ABSENT if value is None else value)
    return spec


def _words(edit: Edit) -> str:
    path, value = edit
    if value is None:
        return f"{path} removed"
    return f"an image of yours (spec.{path})" if path == "image" else f"{path}={value}"
