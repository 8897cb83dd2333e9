"""Control planes and suites for the integration and upstream rungs; nothing here starts unless a test asks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from kubefoundry_local.control_plane import ControlPlane
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from support.ground import prepared_plane
from support.namespaces import new_namespace
from support.suites import running_suite

PROVIDERS = ("kaito", "dynamo", "kuberay")

LAST: Final = 40
"""Lines of a process's log that a failed test shows."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test shows what the processes of its suite logged last: a race may not come again."""
    report = yield
    if report.failed:
        arguments: dict[str, Any] = getattr(item, "funcargs", {})
        for suite in (value for value in arguments.values() if isinstance(value, Suite)):
            logs = {name: component.log for name, component in suite.components.items()}
            for name, log in {**logs, "simulators": suite.folder / "simulators.log"}.items():
                if log.is_file():
                    lines = log.read_text(errors="replace").splitlines()
                    report.sections.append((f"log of {name}", "\n".join(lines[-LAST:])))
    return report


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with our CRDs and nothing that runs."""
    folder = tmp_path_factory.mktemp("cluster")
    with prepared_plane(folder / "plane", ()) as plane:
        yield plane


@pytest.fixture(scope="session")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """The whole suite with simulated upstream operators, for tests that leave it as it was."""
    with running_suite(tmp_path_factory.mktemp("suite"), *PROVIDERS) as made:
        made.start()
        yield made


@pytest.fixture(scope="session")
def strict_suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """As `suite`, the simulated operators with the webhooks that refuse what the real ones refuse."""
    folder = tmp_path_factory.mktemp("strict")
    with running_suite(folder, *PROVIDERS, simulator_flags=["--webhooks"]) as made:
        made.start()
        yield made


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Suite]:
    """A control plane of one's own with our CRDs, for tests that start and stop components themselves."""
    with running_suite(tmp_path) as made:
        yield made


@pytest.fixture
async def api(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """An administrator's client to the control plane of the test's `suite`, `fresh` or `cluster`."""
    name = next(name for name in ("fresh", "suite", "cluster") if name in request.fixturenames)
    made = request.getfixturevalue(name)
    plane = made.plane if isinstance(made, Suite) else made
    async with Client(credentials.from_kubeconfig(str(plane.kubeconfig)), user_agent="test") as client:
        yield client


@pytest.fixture
async def namespace(api: Client) -> str:
    """A namespace of the test's own."""
    return await new_namespace(api)
