"""Installing and removing without rights: one line says so, and a short list names the objects."""

from __future__ import annotations

import pytest

from kubefoundry_local.suite import Suite
from support.command_line import CommandLine

pytestmark = pytest.mark.integration

ADMINISTRATOR = "ask an administrator of the cluster to run this command"


@pytest.mark.parametrize(
    ("arguments", "first"),
    [
        (
            ["controller install", "--yes"],
            "objects cannot be written: cannot apply CustomResourceDefinition ",
        ),
        (
            ["controller upgrade", "--dry-run"],
            "objects cannot be written: cannot apply CustomResourceDefinition ",
        ),
        (["controller uninstall", "--yes"], "cannot list ModelDeployments in all namespaces: "),
        (["provider install", "kaito", "--yes"], "objects cannot be written: cannot "),
        (["provider upgrade", "kaito", "--dry-run"], "objects cannot be written: cannot "),
        (["provider uninstall", "kaito", "--yes"], "cannot list ModelDeployments in all namespaces: "),
    ],
)
async def test_missing_rights_are_reported_in_one_line(
    suite: Suite, namespace: str, arguments: list[str], first: str
) -> None:
    kubefoundry = CommandLine(suite.plane.kubeconfig, namespace)

    done = await kubefoundry(*arguments, "--as", "ann")

    line, *others = [text for text in done.err.splitlines() if "is ignored: KubeFoundry runs in" not in text]
    assert done.code == 5, done
    assert line.startswith("error: ") and first in line and line.endswith(ADMINISTRATOR), done.err
    assert 'User "ann" cannot' in line
    assert len(others) <= 1, done.err
