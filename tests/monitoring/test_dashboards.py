"""The queries of dashboards and alerts in a real Prometheus that scrapes our processes: make test-monitoring"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kubefoundry_local.ports import free_port
from kubefoundry_local.suite import PROBE, Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, NAMESPACES
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from support.deployments import CPU, GPU, model_deployment
from support.engine_metrics import GAUGES, engines
from support.helm import build
from support.promql import alerts, boards, groups, panel_queries
from support.suites import running_suite
from support.waiting import SECONDS, phase, until_deployment

PROVIDERS: Final = ("kaito", "dynamo", "kuberay")
SCRAPES: Final = 8
"""Scrapes of each process, a second apart, before the first query: a rate needs two."""

RECORDED: Final = (
    "rate(kubefoundry_modeldeployment_deploying_seconds_count[1m]) > 0",
    "rate(vllm:e2e_request_latency_seconds_count[1m]) > 0",
    "increase(kubefoundry_provider_selection_total[1m]) >= 0",
    "count(kubefoundry_provider_up) >= 3",
)
"""What Prometheus has to see first: a measured start, a selection, and providers."""

EMPTY: Final = {
    "KubeFoundry / Fleet: Steps of a start": "the simulated operators start no pods",
    "KubeFoundry / Model: Conditions that are not True": "kube-state-metrics does not run here",
    "KubeFoundry / Model: Running requests": "no engine runs this model",
    "KubeFoundry / Model: Waiting requests": "no engine runs this model",
    "KubeFoundry / Model: Use of the KV cache": "no engine runs this model",
    "KubeFoundry / Model: Tokens": "no engine runs this model",
    "KubeFoundry / Model: Time to the first token": "no engine runs this model",
    "KubeFoundry / Model: Time of a whole request": "no engine runs this model",
}
"""Panels without a series in this run, with the reason."""


class Prometheus:
    """A running Prometheus. `variables` replaces the variables of dashboards."""

    def __init__(self, port: int, variables: dict[str, str]) -> None:
        self._url = f"http://127.0.0.1:{port}"
        self._variables = variables

    def query(self, expression: str, **variables: str) -> list[Any]:
        """Return the result of PromQL now. Fail with Prometheus' message if it is an error.

        `variables` takes precedence over the variables of this object.
        """
        for name, value in {**self._variables, **variables}.items():
            expression = expression.replace(f"${name}", value)
        query = urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(f"{self._url}/api/v1/query?{query}", timeout=SECONDS) as response:
                answer = json.load(response)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{expression}: {error.read().decode()}") from None
        assert answer["status"] == "success"
        assert not answer.get("warnings"), answer["warnings"]
        result: list[Any] = answer["data"]["result"]
        return result


def until_ready(port: int) -> None:
    """Wait until Prometheus answers."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=SECONDS):
                return
        except OSError:
            assert time.monotonic() < deadline, "Prometheus did not start"
            time.sleep(PROBE)


@contextmanager
def prometheus(
    folder: Path, suite: Suite, engine_port: int, variables: dict[str, str]
) -> Iterator[Prometheus]:
    """Run a Prometheus that scrapes the suite and the engines, with our alerts, during the block."""
    port = free_port()
    ports = [engine_port, *(component.metrics_port for component in suite.components.values())]
    targets = [f"127.0.0.1:{port}" for port in ports]
    job = {"job_name": "kubefoundry", "honor_labels": True, "static_configs": [{"targets": targets}]}
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": groups()}))
    (folder / "prometheus.yaml").write_text(
        yaml.safe_dump(
            {
                "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                "rule_files": ["rules.yaml"],
                "scrape_configs": [job],
            }
        )
    )
    flags = (
        f"--config.file={folder / 'prometheus.yaml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    )
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([build("prometheus"), *flags], stdout=log, stderr=log)
    try:
        until_ready(port)
        yield Prometheus(port, variables)
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """All components. Core also exports series for each model, and providers send a heartbeat every 5 s."""
    with running_suite(tmp_path_factory.mktemp("suite"), *PROVIDERS) as made:
        made.start()
        made.components["core"].command.append("--per-object-metrics")
        for component in made.components.values():
            component.stop()
            component.environment["KUBEFOUNDRY_HEARTBEAT_TIMEOUT"] = "15s"
            component.start()
        for component in made.components.values():
            component.wait_ready()
        yield made


async def make_traffic(suite: Suite) -> None:
    """Create models that run, and one whose provider a tenant has invented."""
    async with Client(credentials.from_kubeconfig(str(suite.plane.kubeconfig)), user_agent="test") as api:
        namespace = "recorded"
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        await api.create(NAMESPACES, body, manager="test")
        await create_models(api, namespace)


async def create_models(api: Client, namespace: str) -> None:
    for provider in PROVIDERS:
        model = model_deployment(f"on-{provider}", namespace, GPU, provider=provider)
        await api.create(MODEL_DEPLOYMENTS, model, manager="test")
    await api.create(MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU), manager="test")
    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("lost", namespace, CPU, provider="invented"), manager="test"
    )
    for name in ("m", *(f"on-{provider}" for provider in PROVIDERS)):
        await until_deployment(api, name, namespace, lambda obj: phase(obj) == "Running")


def until(server: Prometheus, expression: str) -> list[Any]:
    """Wait until the expression has a result, and return it."""
    deadline = time.monotonic() + SECONDS
    while not (result := server.query(expression)):
        assert time.monotonic() < deadline, f"no result in time: {expression}"
        time.sleep(PROBE)
    return result


@pytest.fixture(scope="module")
def recorded(suite: Suite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus that has scraped the suite before, while and after it reconciled models."""
    variables = {"__rate_interval": "1m", "namespace": "recorded", "model": "m"}
    with (
        engines(free_port(), "recorded") as served,
        prometheus(tmp_path_factory.mktemp("prometheus"), suite, served.port, variables) as server,
    ):
        # Prometheus sees no increase in the first value of a series.
        until(server, f"min(count_over_time(up[1m])) >= {SCRAPES}")
        served.serve_requests()
        asyncio.run(make_traffic(suite))
        for wanted in RECORDED:
            until(server, wanted)
        yield server


@pytest.mark.parametrize(
    ("title", "expression"),
    [pytest.param(*query, id=f"{number}") for number, query in enumerate(panel_queries())],
)
def test_panel_shows_recorded_series(recorded: Prometheus, title: str, expression: str) -> None:
    assert bool(recorded.query(expression)) == (title not in EMPTY), f"{title}: {expression}"


NOT_REPORTED: Final = {
    ("llamacpp", "Use of the KV cache"),
    ("llamacpp", "Time to the first token"),
    ("llamacpp", "Time of a whole request"),
}
"""Engine and panel for which the engine has no metric."""


@pytest.mark.parametrize("engine", GAUGES)
def test_engine_panel_shows_the_metrics_of_the_engine(recorded: Prometheus, engine: str) -> None:
    for title, expression in panel_queries():
        panel = title.removeprefix("KubeFoundry / Model: ")
        if "modeldeployment=" in expression:
            values = [float(each["value"][1]) for each in recorded.query(expression, model=engine)]

            is_reported = (engine, panel) not in NOT_REPORTED
            assert len(values) == is_reported, title
            assert all(value > 0 for value in values), title  # NaN without a request in the range


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: str(alert["alert"]))
def test_alert_is_quiet_in_a_healthy_cluster(recorded: Prometheus, alert: dict[str, Any]) -> None:
    result = recorded.query(alert["expr"])

    # The model of an unregistered provider is Pending, which is an alert after 15 minutes.
    assert bool(result) == (alert["alert"] == "KubeFoundryModelsWithoutProvider"), result


def test_variables_of_dashboards_have_values(recorded: Prometheus) -> None:
    variables = [
        each for board in boards() for each in board["templating"]["list"] if each["type"] == "query"
    ]
    for variable in variables:
        match = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"])
        assert match

        found = recorded.query(match[1])

        assert {each["metric"][match[2]] for each in found} & {"recorded", "m"}, variable["name"]


def test_provider_invented_by_a_tenant_has_no_series(recorded: Prometheus) -> None:
    assert recorded.query('{provider="invented"}') == []


@pytest.mark.parametrize(
    ("component", "alert"),
    [
        pytest.param("kaito", "KubeFoundryProviderDown", id="provider"),
        pytest.param("core", "KubeFoundryCoreMissing", id="core"),
    ],
)
def test_stopped_component_raises_its_alert(
    recorded: Prometheus, suite: Suite, component: str, alert: str
) -> None:
    [expression] = [rule["expr"] for rule in alerts() if rule["alert"] == alert]
    stopped = suite.components[component]
    stopped.stop()
    try:
        raised = until(recorded, expression)
    finally:
        stopped.start()
        stopped.wait_ready()

    [labels] = [each["metric"] for each in raised]
    assert labels.get("provider", "core") == component
