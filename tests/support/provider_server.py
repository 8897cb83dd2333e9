"""A pod at the start of the server's container, and a stand-in for llama-stack.

The stand-in has llama-stack's classes of specs, provider types and expansion of variables (0.7.3). The acceptance
runs use the real llama-stack.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from support.provider_images import Files, provider_files, wheel
from support.provider_pod import Ended, Pod

API = """
from enum import Enum
class Api(Enum):
    inference = "inference"
    safety = "safety"
class ProviderSpec:
    def __init__(self, *, api, provider_type, config_class, module=None):
        self.api, self.provider_type, self.config_class, self.module = Api(api), provider_type, config_class, module
class RemoteProviderSpec(ProviderSpec):
    def __init__(self, *, adapter_type, **fields):
        super().__init__(**fields)
        self.adapter_type = adapter_type
class InlineProviderSpec(ProviderSpec):
    pass
"""
STACK = r"""
import os, re
def replace_env_vars(value):
    if isinstance(value, dict):
        return {key: replace_env_vars(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [replace_env_vars(inner) for inner in value]
    def expanded(match):
        name, sign, other = match.groups()
        setting = os.environ.get(name)
        if sign == "=":
            return setting or other
        if sign == "+":
            return other if setting else ""
        if not setting:
            raise ValueError(f"Environment variable '{name}' not set or empty")
        return setting
    return re.sub(r"\$\{env\.([A-Z0-9_]+)(?::([=+])([^}]*))?}", expanded, value) if isinstance(value, str) else value
"""
REGISTRY = """
from llama_stack_api import Api
def get_provider_registry(config=None):
    return {Api.inference: {"remote::vllm": None, "inline::here": None}, Api.safety: {}}
"""
ABOUT = {"image": "distribution:1", "container": "llama-stack"}
SOCKET: Final = {"mode": "Sidecar", "transport": "UnixSocket"}
TCP: Final = {"mode": "Sidecar", "transport": "TCP"}
TOKEN_FILE: Final = "/run/lls-provider-tokens/echo/token"
GOOD = provider_files("acme_echo", "remote::acme-echo")


def changed(**modules: str) -> dict[str, str | bytes]:
    """Return the valid provider with other modules: `provider="..."`, `init="..."`."""
    names = {"init": "__init__"}
    return {**GOOD, **{f"acme_echo/{names.get(name, name)}.py": text for name, text in modules.items()}}


SPEC = """
from llama_stack_api import *
def get_provider_spec():
    return RemoteProviderSpec(adapter_type="x", {})
"""
FIELDS = (
    'api="inference", provider_type="remote::acme-echo", config_class="acme_echo.Config", module="acme_echo"'
)


class Server(Pod):
    """The main container: its image's packages, and the volume that the init containers filled.

    Attributes:
        asked: The operator's input of preflight besides image and container.
    """

    asked: Mapping[str, Any] = {}

    def distribution(self, **packages: str) -> None:
        """Install the image's own packages: llama-stack, and others as `name="version"`."""
        files: Files = {
            "llama_stack_api.py": API,
            "llama_stack/core/stack.py": STACK,
            "llama_stack/core/distribution.py": REGISTRY,
        }
        for path, text in files.items():
            (self.root / "site" / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / "site" / path).write_text(str(text))
        for name, version in packages.items():
            self.distributed(name, version)

    def distributed(self, name: str, version: str, *requires: str, files: Files | None = None) -> None:
        """Install a package of the image."""
        about = self.root / "site" / f"{name}-{version}.dist-info" / "METADATA"
        about.parent.mkdir(parents=True)
        head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        about.write_text(head + "".join(f"Requires-Dist: {requirement}\n" for requirement in requires))
        for path, text in (files or {}).items():
            (self.root / "site" / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / "site" / path).write_text(str(text))
        if files:
            (about.parent / "RECORD").write_text("".join(f"{path},,\n" for path in files))

    def provide(
        self, files: Files, name: str = "acme-echo", *, provider_id: str = "echo", **wheel_fields: Any
    ) -> None:
        """Put a provider's files and metadata on the volume, as its install container does."""
        path = wheel(self.root / "wheels", name, files=files, **wheel_fields)
        with zipfile.ZipFile(path) as archive:
            archive.extractall(self.places.packages)
            names = archive.namelist()
        record = self.places.metadata / provider_id / "installed.json"
        record.parent.mkdir(parents=True, exist_ok=True)
        distribution = {"name": name, "version": "1.0.0", "requires": []}
        value = {"providerId": provider_id, "image": f"images/{provider_id}:1", "order": 0}
        record.write_text(json.dumps({**value, "distributions": [distribution], "files": names}))

    def unpack(self, wheels: Path) -> None:
        """Put the contents of all wheels of a folder on the volume."""
        for path in wheels.iterdir():
            with zipfile.ZipFile(path) as archive:
                archive.extractall(self.places.packages)

    def configure(self, section: str = "inference", **changes: Any) -> None:
        """Write run.yaml with a built-in provider and the external provider."""
        entry = {
            "provider_id": "echo",
            "provider_type": "remote::acme-echo",
            "module": "acme_echo",
            **changes,
        }
        built_in = {"provider_id": "built-in", "provider_type": "remote::nothing"}
        self.places.config.mkdir(parents=True, exist_ok=True)
        value = {"version": 2, "providers": {section: [built_in, entry]}}
        (self.places.config / "run.yaml").write_text(yaml.safe_dump(value, sort_keys=False))

    def configure_before(self, provider_id: str, **changes: Any) -> None:
        """Insert a provider into run.yaml, before the providers of `configure`."""
        path = self.places.config / "run.yaml"
        config = yaml.safe_load(path.read_text())
        entry = {"provider_id": provider_id, "provider_type": "remote::acme-echo", **changes}
        config["providers"]["inference"].insert(0, entry)
        path.write_text(yaml.safe_dump(config, sort_keys=False))

    def effective_types(self) -> list[str]:
        """Return provider_type of each provider in the server's configuration."""
        providers = yaml.safe_load(self.places.effective.read_text())["providers"]
        return [entry["provider_type"] for entries in providers.values() for entry in entries]

    def preflight(self, *within: str, **env: str) -> Ended:
        """Run preflight with the image's packages on PYTHONPATH."""
        path = str(self.root / "site")
        return self.command(
            "preflight", {**ABOUT, **self.asked}, env={"PYTHONPATH": path, **env}, within=within
        )


def asks(server: Server, **fields: Any) -> None:
    """Make preflight's input describe the service of the provider."""
    service = {**TCP, "address": "http://127.0.0.1:9", "tokenFile": TOKEN_FILE, "startSeconds": 1, **fields}
    server.asked = {"providers": [{"providerId": "echo", "image": "images/echo:1", "service": service}]}
