"""Adds the commit of the sources to the wheel, for `kubefoundry version` and the metric kubefoundry_build_info."""

from __future__ import annotations

import os
import runpy
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CommitHook(BuildHookInterface):  # type: ignore[type-arg]
    """Writes `commit.txt` into the package. Without a commit, as in an archive of the sources, there is no file."""

    _folder: Path | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file to a wheel. An editable installation has none, because its sources change."""
        package = Path(self.root)
        describe = runpy.run_path(str(package / "src" / "kubefoundry_sdk" / "_api" / "build.py"))["describe"]
        commit = os.environ.get("KUBEFOUNDRY_COMMIT") or describe(package.parent)
        if version == "editable" or not commit:
            return
        self._folder = Path(tempfile.mkdtemp())
        (self._folder / "commit.txt").write_text(f"{commit}\n")
        build_data["force_include"][str(self._folder / "commit.txt")] = "kubefoundry_sdk/commit.txt"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the file once it is in the wheel."""
        if self._folder is not None:
            shutil.rmtree(self._folder)
