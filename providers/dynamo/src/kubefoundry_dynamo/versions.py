"""Dynamo versions, read from image tags and from the fields of the installed CRD.

The CRD shows the operator's release line, and the image tag the runtime's version. Worker flags depend on the runtime
and not on the operator (sources §2.8, §5.2).
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from kubefoundry_sdk import Schema


class Version(NamedTuple):
    """A release of Dynamo."""

    major: int
    minor: int
    patch: int = 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


class Runtime(NamedTuple):
    """The Dynamo version inside an image. `from_tag` is False if the operator cannot read it from the tag."""

    version: Version
    from_tag: bool


REPOSITORY: Final = re.compile(
    r"(^|/)ai-dynamo/[^/]+$|(^|/)(vllm|sglang|tensorrtllm)-runtime$|(^|/)dynamo-frontend$"
)
"""Repositories whose tags are Dynamo's versions: NVIDIA's, and mirrors that keep their names (sources §2.8)."""

OLDEST_RUNTIME: Final = Version(0, 4)
"""The oldest runtime whose worker flags we know (sources §4.2)."""

RELEASE_LINES: Final[tuple[tuple[str, Version], ...]] = (
    ("runtimeVersionOverride", Version(1, 4, 0)),
    ("priorityClassName", Version(1, 3, 0)),
    ("v1beta1", Version(1, 2, 0)),
    ("annotations", Version(1, 1, 0)),
    ("observedGeneration", Version(1, 0, 1)),
    ("restart", Version(0, 9, 1)),
    ("gpuType", Version(0, 8, 1)),
    ("globalDynamoNamespace", Version(0, 7, 1)),
    ("subComponentType", Version(0, 6, 1)),
)
"""Newest first: a feature of the v1alpha1 CRD and a published release of the line that introduced it (sources §2.1,
§2.8; the CRDs of v0.4.1 to main of 2026-08)."""
STORAGE_V1BETA1_LINE: Final = Version(1, 5, 0)
OLDEST_LINE: Final = Version(0, 4, 1)

_SEMVER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_LEADING = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?![\d])")


OPERATOR_VERSION: Final = "operatorVersion"
"""Name of the setting read from the operator's Deployment (`operator.read`)."""


def release_line(schema: Schema) -> Version:
    """Return the operator's own release if known, else a release of the line that the installed CRD shows."""
    if operator_version := schema.discovered.get(OPERATOR_VERSION):
        return parse(operator_version)
    if schema.api_version.endswith("/v1beta1"):
        return STORAGE_V1BETA1_LINE
    for feature, release in RELEASE_LINES:
        if feature in schema.features:
            return release
    return OLDEST_LINE


def runtime_of(image: str, line: Version, assumed: Version, stated: Version | None = None) -> Runtime:
    """Return the runtime in `image`: as set, else from its tag (`1.0.1`, `v0.7.1-cuda12`), else `assumed`.

    A tag of another repository may be any version: it counts only if Dynamo has such a version for an operator of
    release `line`. The operator reads only strict semantic versions, and none next to a digest (sources §2.8).
    """
    reference, _, digest = image.partition("@")
    path, _, last = reference.rpartition("/")
    name, _, tag = last.partition(":")
    match = _LEADING.match(tag)
    tagged = Version(int(match[1]), int(match[2]), int(match[3] or 0)) if match else None
    if tagged is not None and not (REPOSITORY.search(f"{path}/{name}") or _plausible(tagged, line)):
        tagged = None
    version = stated or tagged or assumed
    readable = not digest and _SEMVER.fullmatch(tag) is not None
    return Runtime(version, from_tag=readable and tagged == version)


def _plausible(version: Version, line: Version) -> bool:
    """Check whether an operator of release `line` can run the version.

    Both should have the same minor version (sources §2.8); one more major version is at the user's risk.
    """
    return OLDEST_RUNTIME <= version < Version(line.major + 2, 0)


def parse(text: str) -> Version:
    """Return the version of `MAJOR.MINOR.PATCH`. Raise ValueError for any other text."""
    if not re.fullmatch(r"(0|[1-9]\d{0,3})(\.(0|[1-9]\d{0,3})){2}", text):
        raise ValueError(f"{text!r} is not a MAJOR.MINOR.PATCH version")
    return Version(*(int(part) for part in text.split(".")))
