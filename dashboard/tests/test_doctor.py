"""The page of the doctor reports a missing permission as a finding, as `kubefoundry doctor` does."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from kubefoundry_cli.main import kubefoundry
from support.fake_server import Answers, serving
from support.local_page import local_page

REFUSED = "modeldeployments is forbidden: no"


class Forbidding(Answers):
    """A server that refuses to list models."""

    def to(self, path: str) -> tuple[int, Any]:
        """Return 403 for models."""
        if "/modeldeployments" in path:
            return 403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": REFUSED}
        return super().to(path)


async def test_doctor_of_forbidden_namespace_shows_other_findings(tmp_path: Path) -> None:
    answers = Forbidding()
    plurals = ("deployments", "leases", "events", "pods", "inferenceproviderconfigs")
    answers.objects = {plural: [] for plural in plurals}
    with serving(answers, tmp_path) as kubeconfig:
        async with (
            local_page(kubeconfig) as local,
            local.client.get(f"{local.base}/doctor?namespace=other") as page,
        ):
            shown = await page.text()
        words = ["doctor", "-n", "other", "--kubeconfig", str(kubeconfig)]
        done = await asyncio.to_thread(CliRunner().invoke, kubefoundry, words)

    for text in (shown, done.stdout):
        assert f"cannot list ModelDeployments in namespace other: {REFUSED}" in text
        assert "no provider is registered" in text
    assert (page.status, done.exit_code) == (200, 1)
