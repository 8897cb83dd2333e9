"""A command that a message names works where the message came from."""

from __future__ import annotations

from datetime import UTC, datetime

import click
import pytest
from click.testing import CliRunner

from kubefoundry_cli import cluster
from kubefoundry_cli.commands.doctor import components
from kubefoundry_cli.hint import hint


@pytest.mark.parametrize(
    ("options", "command", "said"),
    [
        pytest.param([], "status m", "kubefoundry status m", id="nothing given"),
        pytest.param(["-n", "a"], "status m", "kubefoundry status m -n a", id="a namespace"),
        pytest.param(
            ["--context", "x y", "--kubeconfig", "k"],
            "status m",
            "kubefoundry status m --context 'x y' --kubeconfig k",
            id="a context with a blank",
        ),
        pytest.param(["-n", "a"], "status -A", "kubefoundry status -A", id="all namespaces"),
    ],
)
def test_the_options_that_say_where_are_repeated(options: list[str], command: str, said: str) -> None:
    @click.command()
    @cluster.options
    def shows(target: cluster.Target) -> None:
        print(hint(command))

    assert CliRunner().invoke(shows, options).stdout.strip() == said


@pytest.mark.parametrize(
    ("stamp", "state", "said"),
    [
        pytest.param(None, "wrong", "no Deployment in namespace", id="never renewed"),
        pytest.param("2020-01-01T00:00:00.000000Z", "wrong", "no Deployment in namespace", id="long ago"),
        pytest.param("now", "good", "runs outside this cluster (Lease held by here-1)", id="held"),
    ],
)
def test_a_suite_outside_the_cluster_is_recognised_by_its_leases(
    stamp: str | None, state: str, said: str
) -> None:
    renewed = datetime.now(UTC).isoformat() if stamp == "now" else stamp
    lease = {
        "metadata": {"name": "kubefoundry-core"},
        "spec": {"holderIdentity": "here-1", "renewTime": renewed},
    }

    [finding] = components([], [lease])

    assert (finding.state, said in finding.text) == (state, True)
