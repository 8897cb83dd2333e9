"""A command line that asks no cluster, and files for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from kubefoundry_cli.main import kubefoundry
from support.deployments import model_deployment


@pytest.fixture
def call() -> Callable[..., Result]:
    """Runs a command: arguments -> result with exit_code, stdout and stderr."""

    def run(*arguments: str, input: str | None = None) -> Result:
        return CliRunner().invoke(kubefoundry, list(arguments), input=input)

    return run


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., str]:
    """Writes a ModelDeployment of that spec: the file's name."""

    def write(spec: dict[str, Any], name: str = "m") -> str:
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump(model_deployment(name, "models", spec)))
        return str(path)

    return write
