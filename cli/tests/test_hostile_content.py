"""Whatever the CRDs let in, a command ends with one of its exit codes and writes nothing that moves a cursor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubefoundry_cli.failure import Exit
from kubefoundry_cli.install import bundle
from kubefoundry_cli.main import kubefoundry
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, PROVIDER_CONFIGS
from support.deployments import GPU, model_deployment
from support.fake_server import Answers, serving
from support.schema_values import values

CRDS = {one["metadata"]["name"]: one for one in bundle.crds()}
TEXTS = (
    "\x1b[2J\x1b]0;title\x07\x1b[31mred",
    "\u202egnirts\u2066\u200b",
    "two\nlines\r\x08\x7f\x9b31m",
    "👩‍👩‍👧‍👦 \ufeff\u2028",
    "x" * 100_000,
)
"""Escape sequences of terminals, text that runs backwards, further lines, odd widths, a hundred kilobytes."""

LISTS = ("status", "status -o wide", "status -o name", "status -A", "provider list", "provider list -o wide")
COMMANDS = (*LISTS, "controller status -o wide", "doctor", "doctor -o yaml", "version", "explain m", "plan m")
OF_A_MODEL = (
    "status m",
    "doctor m",
    "wait m --timeout 0",
    "logs m",
    "chat m hello",
    "curl m",
    "eject m --yes",
)


def schema(kind: str, part: str) -> dict[str, Any]:
    version = CRDS[kind]["spec"]["versions"][0]
    found: dict[str, Any] = version["schema"]["openAPIV3Schema"]["properties"][part]
    return found


def spoiled(value: Any, text: str) -> Any:
    """With that text in the place of some texts."""
    if isinstance(value, dict):
        return {key: spoiled(item, text) for key, item in value.items()}
    if isinstance(value, list):
        return [spoiled(item, text) for item in value]
    return text if isinstance(value, str) and len(value) % 2 else value


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Answers, str]]:
    answers = Answers()
    with serving(answers, tmp_path_factory.mktemp("server")) as kubeconfig:
        yield answers, str(kubeconfig)


STATUSES = st.tuples(
    values(schema(MODEL_DEPLOYMENTS.crd, "status")),
    values(schema(PROVIDER_CONFIGS.crd, "status")),
    values(schema(PROVIDER_CONFIGS.crd, "spec")),
    st.sampled_from(TEXTS),
)


@pytest.mark.slow
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(found=STATUSES)
@pytest.mark.parametrize("command", [*COMMANDS, *OF_A_MODEL])
def test_command_survives_it(server: tuple[Answers, str], command: str, found: tuple[Any, ...]) -> None:
    answers, kubeconfig = server
    status, provider_status, provider_spec, text = found
    model = model_deployment("m", "models", GPU)
    model["metadata"] |= {"uid": "u", "generation": 1, "resourceVersion": "1", "annotations": {"a": text}}
    config = {"metadata": {"name": "kuberay", "uid": "v", "resourceVersion": "1"}}
    answers.objects = {
        "modeldeployments": [{**model, "status": spoiled(status, text)}],
        "inferenceproviderconfigs": [
            {**config, "spec": spoiled(provider_spec, text), "status": spoiled(provider_status, text)}
        ],
        **{plural: [] for plural in ("deployments", "leases", "events", "pods", "customresourcedefinitions")},
    }

    done = CliRunner().invoke(kubefoundry, [*command.split(), "--kubeconfig", kubeconfig])

    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    assert done.exit_code in list(Exit), done
    shown = done.stdout + done.stderr
    assert [char for char in set(shown) if not char.isprintable() and char != "\n"] == []
    if "yaml" in command and done.exit_code in (0, 1):
        yaml.safe_load(done.stdout)
