"""Reads `lls-provider-spec.yaml`: a provider image's own metadata (sources §5.2 "Provider Metadata File")."""

from __future__ import annotations

import keyword
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from llamastack_providers import apis, layout, service, yaml_file
from llamastack_providers.errors import Code, Failure

API_VERSION: Final = "llamastack.io/v1alpha1"
KIND: Final = "ProviderPackage"
PROVIDER_TYPE: Final = re.compile(r"(remote|inline)::[a-z0-9-]+")
"""sources §5.2 "Validation Rules". llama-stack itself has types with `_`; to allow them, change this pattern."""
_SEMVER: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
    r"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)
"""semver.org 2.0.0, item 2 to 10."""
LONGEST: Final = 1024
"""The most characters of a field."""
LARGEST: Final = 256 * 1024
"""The most bytes of a metadata file; a useful one has at most a few thousand."""
NAME: Final = f"{layout.PROVIDER}/{layout.SPEC_FILE}"
_DEFAULT_CONFIG_KEY: Final = "url"
_TRANSPORTS: Final = tuple(service.TRANSPORTS)


@dataclass(frozen=True, slots=True)
class PackagedService:
    """The service that the image contains or needs.

    Attributes:
        config_key: The key of the provider's config that gets the service's address.
        transports: Keys of `service.TRANSPORTS` that the provider and its service support.
        required: Whether the provider cannot work without it.
    """

    config_key: str
    transports: tuple[str, ...]
    required: bool


@dataclass(frozen=True, slots=True)
class PackageSpec:
    """The validated metadata.

    Attributes:
        api: llama-stack's name of the API.
        dependency_wheels: None if the field is absent.
        service: None if the image describes none.
    """

    name: str
    version: str
    package_name: str
    provider_type: str
    api: str
    wheel_path: str
    dependency_wheels: tuple[str, ...] | None
    service: PackagedService | None = None


def read(path: Path, name: str = NAME) -> PackageSpec:
    """Return the validated metadata.

    Raises:
        Failure: InvalidYaml or InvalidSpec.
        OSError: There is no such file.
    """
    value = load(path, name)
    for problem in problems(value):
        raise Failure(Code.InvalidSpec, f"{name}: {problem}")
    about, spec = value["metadata"], value["spec"]
    wheels = spec.get("dependencyWheels")
    return PackageSpec(
        name=about["name"],
        version=about["version"],
        package_name=spec["packageName"],
        provider_type=spec["providerType"],
        api=spec["api"],
        wheel_path=spec["wheelPath"],
        dependency_wheels=None if wheels is None else tuple(wheels),
        service=_packaged_service(spec.get("service")),
    )


def _packaged_service(value: Any) -> PackagedService | None:
    if value is None:
        return None
    return PackagedService(
        config_key=value.get("configKey", _DEFAULT_CONFIG_KEY),
        transports=tuple(value.get("transports", _TRANSPORTS)),
        required=value.get("required", True),
    )


def load(path: Path, name: str = NAME) -> Any:
    """Return the file's value.

    Raises:
        Failure: InvalidYaml, or InvalidSpec for anything but a file of a sensible size.
        OSError: The file is not readable.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        raise
    except (OSError, RuntimeError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise Failure(Code.InvalidSpec, f"{name} cannot be opened: {why}") from None
    if not stat.S_ISREG(status.st_mode):
        raise Failure(Code.InvalidSpec, f"{name} is not a file, but a folder, pipe or device")
    if status.st_size > LARGEST:
        raise Failure(Code.InvalidSpec, f"{name} has {status.st_size} bytes; at most {LARGEST} are read")
    return yaml_file.load(path, name)


def problems(value: Any) -> Iterator[str]:
    """Yield every violated rule, as field and problem."""
    if not isinstance(value, dict):
        yield "the file must contain a mapping with apiVersion, kind, metadata and spec"
        return
    for key, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
        if value.get(key) != expected:
            yield f"{key}: must be {expected}, not {_shown(value.get(key))}"
    yield from _metadata(value.get("metadata"))
    yield from _spec(value.get("spec"))


def _metadata(about: Any) -> Iterator[str]:
    if not isinstance(about, dict):
        yield "metadata: must be a mapping with name, version and vendor"
        return
    for key in ("name", "version", "vendor"):
        yield from _required_text(about, key, "metadata")
    version = about.get("version")
    if isinstance(version, str) and version.isprintable() and version and not _SEMVER.fullmatch(version):
        yield f"metadata.version: {version!r} is not a semantic version such as 1.2.0"


def _spec(spec: Any) -> Iterator[str]:
    if not isinstance(spec, dict):
        yield "spec: must be a mapping with packageName, providerType, api and wheelPath"
        return
    for key in ("packageName", "providerType", "api", "wheelPath"):
        yield from _required_text(spec, key, "spec")
    package, kind, api = (_text(spec.get(key)) for key in ("packageName", "providerType", "api"))
    if package and not all(
        part.isidentifier() and not keyword.iskeyword(part) for part in package.split(".")
    ):
        yield f"spec.packageName: {package!r} is not a Python module path such as my_org.custom_vllm"
    if kind and kind.isprintable() and not PROVIDER_TYPE.fullmatch(kind):
        yield (
            f"spec.providerType: {kind!r} must be remote:: or inline:: followed by lower-case letters, digits and "
            "hyphens (no underscores)"
        )
    if api and api not in apis.SECTIONS.values():
        yield f"spec.api: {api!r} is not one of {', '.join(apis.SECTIONS.values())}"
    wheels = spec.get("dependencyWheels")
    if wheels is not None and not (isinstance(wheels, list) and all(_text(wheel) for wheel in wheels)):
        yield "spec.dependencyWheels: must be a list of paths"
    elif not all(wheel.isprintable() for wheel in wheels or ()):
        yield "spec.dependencyWheels: a path has characters that cannot be printed"
    if spec.get("service") is not None:
        yield from _service(spec["service"])


def _service(value: Any) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"spec.service: must be a mapping, not {_shown(value)}"
        return
    key = value.get("configKey", _DEFAULT_CONFIG_KEY)
    if not isinstance(key, str) or not key.isidentifier() or keyword.iskeyword(key) or len(key) > LONGEST:
        yield f"spec.service.configKey: {_shown(key)} is not a name of a field in Python such as url"
    transports = value.get("transports", _TRANSPORTS)
    if not isinstance(transports, (list, tuple)) or not transports:
        yield "spec.service.transports: must be a list with unix, tcp or both"
    elif unknown := [item for item in transports if item not in _TRANSPORTS]:
        yield f"spec.service.transports: {_shown(unknown[0])} is not one of {', '.join(_TRANSPORTS)}"
    health = value.get("health", "/")
    if not _text(health).startswith("/"):
        yield f"spec.service.health: must be a path that begins with /, not {_shown(health)}"
    if not isinstance(required := value.get("required", True), bool):
        yield f"spec.service.required: must be true or false, not {_shown(required)}"


def _required_text(mapping: dict[str, Any], key: str, parent: str) -> Iterator[str]:
    value = mapping.get(key)
    if value is None or value == "":
        yield f"{parent}.{key}: is required"
    elif not isinstance(value, str):
        yield f"{parent}.{key}: must be a text, not {_shown(value)} (put it in quotes)"
    elif not value.isprintable():
        yield f"{parent}.{key}: {ascii(value)[:80]} has characters that cannot be printed"
    elif len(value) > LONGEST:
        yield f"{parent}.{key}: has {len(value)} characters; at most {LONGEST} are allowed"


def _shown(value: Any) -> str:
    """Format a value for a message.

    Nested values show only their kind: YAML aliases can make them larger than memory.
    """
    return f"a {type(value).__name__}" if isinstance(value, (dict, list)) else ascii(value)[:80]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
