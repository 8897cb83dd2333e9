"""Files with several models: each has its result, and the exit code is the worst."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from support.deployments import CPU, GPU, model_deployment
from support.output_schema import checked
from support.upstream import STANDINS

SECRET: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., str]:
    """Write the objects to a file of YAML documents, and return its name."""

    def write(*objects: dict[str, Any]) -> str:
        path = tmp_path / "models.yaml"
        path.write_text(yaml.safe_dump_all(objects))
        return str(path)

    return write


def model(name: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return model_deployment(name, "models", spec, **metadata)


def test_render_prints_the_objects_of_each_model(
    call: Callable[..., Result], written: Callable[..., str]
) -> None:
    file = written(model("a", CPU), SECRET, model("b", CPU))

    done = call("render", "-f", file, "--provider", "direct", "-o", "json")

    assert done.exit_code == 0, done.stderr
    names = [obj["metadata"]["name"] for obj in json.loads(done.stdout) if obj["kind"] == "Deployment"]
    assert names == ["a", "b"]
    assert f"note: {file} also has Secret, which this command skips" in done.stderr


def test_render_goes_on_after_an_invalid_model(
    call: Callable[..., Result], written: Callable[..., str]
) -> None:
    file = written(model("a", {"model": {"id": "org/m"}, "engine": {"type": "no"}}), model("b", CPU))

    done = call("render", "-f", file, "--provider", "direct")

    assert done.exit_code == 2
    assert "error: ModelDeployment 'a' is not valid: spec.engine.type" in done.stderr
    kinds = [obj["kind"] for obj in yaml.safe_load_all(done.stdout)]
    assert "Deployment" in kinds


def test_explain_offline_explains_each_model(
    call: Callable[..., Result], written: Callable[..., str]
) -> None:
    file = written(model("a", GPU), model("b", CPU))

    table = call("explain", "-f", file, "--offline")
    listed = call("explain", "-f", file, "--offline", "-o", "json")

    assert "ModelDeployment models/a\n" in table.stdout
    assert "\n\nModelDeployment models/b\n" in table.stdout
    answers = checked("explain", listed.stdout)
    assert [answer["name"] for answer in answers] == ["a", "b"]
    assert table.exit_code == listed.exit_code == 0, table.stderr


def test_explain_keeps_one_document_for_one_model(
    call: Callable[..., Result], written: Callable[..., str]
) -> None:
    done = call("explain", "-f", written(model("a", GPU)), "--offline", "-o", "json")

    assert checked("explain", done.stdout)["name"] == "a"


@pytest.mark.parametrize("command", [("render",), ("explain", "--offline")])
@pytest.mark.parametrize(
    ("objects", "options", "words"),
    [
        pytest.param(
            [model("a", GPU), model("a", CPU)], [], "has ModelDeployment models/a twice", id="twice"
        ),
        pytest.param(
            [model("a", GPU), model("b", CPU)],
            ["--set", "image=x"],
            "has 2 ModelDeployments, and --set edits one",
            id="edits",
        ),
        pytest.param([SECRET], [], "has 0 ModelDeployments beside Secret; one is needed", id="none"),
    ],
)
def test_unusable_file_is_refused_in_one_line(
    call: Callable[..., Result],
    written: Callable[..., str],
    command: tuple[str, ...],
    objects: list[dict[str, Any]],
    options: list[str],
    words: str,
) -> None:
    done = call(*command, "-f", written(*objects), *options)

    assert (done.exit_code, words in done.stderr, done.stderr.count("\n")) == (2, True, 1), done.stderr


def test_render_for_all_names_providers_without_a_crd(
    call: Callable[..., Result], file: Callable[..., str]
) -> None:
    crd = str(STANDINS / "kuberay.yaml")

    done = call("render", "-f", file(GPU), "--provider", "all", "--crd", crd)

    assert done.exit_code == 0, done.stderr
    for name in ("kaito", "dynamo"):
        assert done.stderr.count(f"note: provider {name} is left out: CRD ") == 1
    for name in ("kuberay", "direct"):
        assert f"provider {name} is left out" not in done.stderr
