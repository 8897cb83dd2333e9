"""The page of the doctor reports a missing permission as a finding, as `kubefoundry doctor` does."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, CookieJar
from aiohttp.test_utils import TestServer
from click.testing import CliRunner

from kubefoundry_cli.main import kubefoundry
from kubefoundry_dashboard.access import Local
from kubefoundry_dashboard.application import make
from kubefoundry_sdk._cluster.credentials import from_kubeconfig
from support.fake_server import Answers, serving

REFUSED = "modeldeployments is forbidden: no"


class Forbidding(Answers):
    """A server that refuses to list models."""

    def to(self, path: str) -> tuple[int, Any]:
        """Return 403 for models."""
        if "/modeldeployments" in path:
            return 403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": REFUSED}
        return super().to(path)


async def test_doctor_of_a_forbidden_namespace_shows_the_other_findings(tmp_path: Path) -> None:
    answers = Forbidding()
    plurals = ("deployments", "leases", "events", "pods", "inferenceproviderconfigs")
    answers.objects = {plural: [] for plural in plurals}
    with serving(answers, tmp_path) as kubeconfig:
        access = Local(from_kubeconfig(str(kubeconfig), None), "models", 1)
        async with (
            TestServer(make(access)) as server,
            ClientSession(cookie_jar=CookieJar(unsafe=True)) as client,
        ):
            base = f"http://127.0.0.1:{server.port}"
            async with client.get(f"{base}/?code={access.code}") as page:
                await page.read()
            async with client.get(f"{base}/doctor?namespace=other") as page:
                shown = await page.text()
        words = ["doctor", "-n", "other", "--kubeconfig", str(kubeconfig)]
        done = await asyncio.to_thread(CliRunner().invoke, kubefoundry, words)

    for text in (shown, done.stdout):
        assert f"cannot list ModelDeployments in namespace other: {REFUSED}" in text
        assert "no provider is registered" in text
    assert (page.status, done.exit_code) == (200, 1)
