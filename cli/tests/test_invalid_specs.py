"""An invalid ModelDeployment has one exit code in all commands: USAGE if the user gave it, NO if it is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from kubefoundry_cli.failure import Exit
from support.deployments import GPU, model_deployment
from support.fake_server import Answers, serving
from support.upstream import STANDINS

Call = Callable[..., Result]

FILES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "value": lambda obj: obj["spec"]["engine"].update(type="nope"),
    "type": lambda obj: obj["spec"]["engine"].update(contextLength="many"),
    "range": lambda obj: obj["spec"]["resources"]["gpu"].update(count=-1),
    "rule": lambda obj: obj["spec"].update(scaling={"mode": "disaggregated"}),
    "missing field": lambda obj: obj["spec"].pop("model"),
    "spec": lambda obj: obj.update(spec=["no", "map"]),
    "field": lambda obj: obj["spec"]["engine"].update(contexLength=1),
    "name": lambda obj: obj["metadata"].update(name="Bad_Name"),
    "name's type": lambda obj: obj["metadata"].update(name=7),
    "no name": lambda obj: obj["metadata"].pop("name"),
    "version": lambda obj: obj.update(apiVersion="kubefoundry.ai/v9"),
    "kind": lambda obj: obj.update(kind="Pod"),
}
OF_A_FILE = (
    "explain -f FILE",
    "explain -f FILE --offline",
    "plan -f FILE",
    f"render -f FILE --provider kuberay --crd {STANDINS / 'kuberay.yaml'}",
)
EDITS = (
    "engine.type=nope",
    "engine.contextLength=many",
    "engine.contexLength=1",
    "model.id=",
    "engine",
    "x=1",
)
OF_AN_EDIT = (
    "explain m --set EDIT",
    "plan m --set EDIT",
    "explain -f FILE --set EDIT",
    "explain -f FILE --offline --set EDIT",
    "plan -f FILE --set EDIT",
    "render -f FILE --set EDIT",
    "deploy o/m --dry-run --set EDIT",
    "deploy o/m --yes --set EDIT",
)
OF_ARGUMENTS = (
    "deploy o/m Bad_Name --dry-run",
    "deploy o/m Bad_Name --yes",
    "deploy o/m --engine nope --dry-run",
    "deploy o/m --provider Bad_Name --yes",
    "deploy o/m --image x^y --yes",
    "scale m 1.5",
    "scale m -1",
)


def stored(spec: dict[str, Any]) -> dict[str, Any]:
    model = model_deployment("m", "models", spec)
    model["metadata"] |= {"uid": "u", "generation": 1, "resourceVersion": "1"}
    return model


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[Answers, str]]:
    """Yield a server with the valid model `m`, and its kubeconfig."""
    answers = Answers()
    answers.objects = {
        "modeldeployments": [stored(GPU)],
        **{plural: [] for plural in ("inferenceproviderconfigs", "customresourcedefinitions")},
    }
    with serving(answers, tmp_path) as kubeconfig:
        yield answers, str(kubeconfig)


def run(call: Call, kubeconfig: str, command: str) -> Result:
    words = command.split()
    return call(*words, *(() if words[0] == "render" else ("--kubeconfig", kubeconfig)))


@pytest.mark.parametrize("wrong", FILES)
@pytest.mark.parametrize("command", OF_A_FILE)
def test_invalid_file_is_invalid_usage(
    call: Call, cluster: tuple[Answers, str], tmp_path: Path, command: str, wrong: str
) -> None:
    document = model_deployment("new", "models", yaml.safe_load(yaml.safe_dump(GPU)))
    FILES[wrong](document)
    path = tmp_path / "m.yaml"
    path.write_text(yaml.safe_dump(document))

    done = run(call, cluster[1], command.replace("FILE", str(path)))

    assert (done.exit_code, done.stdout) == (Exit.USAGE, ""), done.stderr


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("command", OF_AN_EDIT)
def test_invalid_edit_is_invalid_usage(
    call: Call, cluster: tuple[Answers, str], file: Callable[..., str], command: str, edit: str
) -> None:
    done = run(call, cluster[1], command.replace("FILE", file(GPU, "new")).replace("EDIT", edit))

    assert (done.exit_code, done.stdout) == (Exit.USAGE, ""), done.stderr


@pytest.mark.parametrize("command", OF_ARGUMENTS)
def test_invalid_argument_is_invalid_usage(call: Call, cluster: tuple[Answers, str], command: str) -> None:
    done = run(call, cluster[1], command)

    assert (done.exit_code, done.stdout) == (Exit.USAGE, ""), done.stderr


@pytest.mark.parametrize("command", ["plan m", "explain m"])
def test_invalid_stored_model_is_a_failure(call: Call, cluster: tuple[Answers, str], command: str) -> None:
    answers, kubeconfig = cluster
    answers.objects = {**answers.objects, "modeldeployments": [stored({**GPU, "engine": {"type": "nope"}})]}

    done = run(call, kubeconfig, command)

    assert (done.exit_code, "is not valid: engine.type" in done.stderr.replace("spec.", "")) == (1, True), (
        done
    )
