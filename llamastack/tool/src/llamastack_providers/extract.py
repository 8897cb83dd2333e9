"""Implements `extract-config`: finds the distribution's own run configuration in its image.

The places come from sources §5.3, from the images of llama-stack 0.2 to 0.7 and OGX, including Open Data
Hub's.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from llamastack_providers.errors import Code, Failure
from llamastack_providers.layout import Layout

_FIXED: Final = tuple(
    f"{folder}/{name}"
    for folder in ("/opt/app-root", "/etc/llama-stack", "/app")
    for name in ("run.yaml", "config.yaml")
)
_PACKAGES: Final = ("llama_stack", "ogx")
_DISTRIBUTION_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def run(places: Layout) -> str:
    """Copy the first configuration that exists, and return its path.

    Raises:
        Failure: NoBaseConfig.
        OSError: A file is not readable or writable.
    """
    tried: list[str] = []
    for name, path in _candidates(places, os.environ):
        if path.is_file():
            target = places.base_config
            target.parent.mkdir(parents=True, exist_ok=True)
            draft = target.with_name(".run.yaml.draft")
            shutil.copyfile(path, draft)
            draft.chmod(0o664)
            draft.replace(target)
            return name
        tried.append(f"  - {name} (not found)")
    unset = [name for name in ("RUN_CONFIG_PATH", "DISTRO_NAME") if not os.environ.get(name)]
    tried += [f"  - ${name} (not set)" for name in unset]
    raise Failure(Code.NoBaseConfig, "Checked paths:\n" + "\n".join(tried))


def _candidates(places: Layout, environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Yield each place by its name in messages, with its path."""
    for name in (environment.get("RUN_CONFIG_PATH"), *_FIXED):
        if name:
            yield name, places.at(name)
    distribution = environment.get("DISTRO_NAME", "")
    if _DISTRIBUTION_NAME.fullmatch(distribution):
        # find_spec imports no package: an import would run the distribution's code.
        module_specs = [module_spec for name in _PACKAGES if (module_spec := importlib.util.find_spec(name))]
        for folder in (
            place for module_spec in module_specs for place in module_spec.submodule_search_locations or ()
        ):
            for file in ("config.yaml", "run.yaml"):
                path = Path(folder) / "distributions" / distribution / file
                yield str(path), path
