"""The command line as a whole: help, usage, and what a command says when it cannot do what was asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import Result

from kubefoundry_cli import cluster
from kubefoundry_cli.creation import name_of
from kubefoundry_cli.health import phase, summary
from kubefoundry_cli.main import COMMANDS, GROUPS, LEADING, kubefoundry, reordered
from kubefoundry_cli.model import from_file, valid
from kubefoundry_cli.model_table import rows
from kubefoundry_cli.providers import installed, probed
from kubefoundry_cli.upgrade import made
from support.deployments import CPU, GPU
from support.upstream import STANDINS, standin

Call = Callable[..., Result]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(call: Call, name: str) -> None:
    done = call(name, "--help")

    assert done.exit_code == 0
    assert f"kubefoundry {name}" in done.stdout
    assert done.stdout.splitlines()[2].strip()


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("-n models status", "status -n models"),
        ("-nmodels status", "status -nmodels"),
        ("--namespace=models --context c status -o json", "status --namespace=models --context c -o json"),
        ("--as bob --as-group a --as-group b wait m", "wait --as bob --as-group a --as-group b m"),
        ("--kubeconfig f provider list", "provider list --kubeconfig f"),
        ("-n a status -n b", "status -n a -n b"),
        ("-n a --help", "--help -n a"),
        ("--help", "--help"),
        ("-n", "-n"),
        ("status -n a", "status -n a"),
        ("--nonsense status", "--nonsense status"),
        ("", ""),
    ],
)
def test_options_before_the_command_are_those_of_the_command(given: str, meant: str) -> None:
    assert reordered(given.split()) == meant.split()


def test_groups_are_the_commands_with_commands() -> None:
    found = {name: kubefoundry.get_command(click.Context(kubefoundry), name) for name in COMMANDS}

    assert {name for name, command in found.items() if isinstance(command, click.Group)} == set(GROUPS)


def test_leading_options_are_those_of_every_cluster_command() -> None:
    @click.command()
    @cluster.options
    def command(target: cluster.Target) -> None:
        """Do nothing."""

    defined = {name for option in command.params for name in option.opts}

    assert defined == set(LEADING)


def test_help_lists_every_command(call: Call) -> None:
    done = call("--help")

    assert [name for name in COMMANDS if f"  {name} " not in done.stdout] == []


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(["nonsense"], 2, "No such command 'nonsense'", id="command"),
        pytest.param(["explain"], 2, "name a model, or give a file with -f", id="nothing to explain"),
        pytest.param(
            ["explain", "m", "-f", "x"], 2, "name a model, or give a file with -f", id="two to explain"
        ),
        pytest.param(["explain", "m", "--offline"], 2, "--offline needs a file", id="offline without a file"),
        pytest.param(
            ["render", "-f", "/nonexistent", "--crd", "x"], 2, "cannot read /nonexistent", id="no file"
        ),
        pytest.param(
            ["status", "--kubeconfig", "/nonexistent"], 4, "/nonexistent does not exist", id="no kubeconfig"
        ),
        pytest.param(["scale", "m", "9" * 10], 2, "is more than 999999999", id="too many replicas"),
        pytest.param(["scale", "m", "--", "-1"], 2, "'-1' is not a whole number", id="replicas below zero"),
        pytest.param(
            ["scale", "m", "three"], 2, "'three' is not a whole number of 0 or more", id="no number"
        ),
        pytest.param(
            ["deploy", "o/m", "Bad_Name", "--dry-run"], 2, "metadata.name: must be lower", id="no name"
        ),
        pytest.param(["deploy", "o/m", "n" * 254, "--dry-run"], 2, "at most 253", id="a name too long"),
        pytest.param(["chat", "m"], 2, "no question given", id="no question"),
        pytest.param(["curl", "m", "-d", "{"], 2, "-d is not JSON", id="no JSON"),
    ],
)
def test_errors_have_one_line_and_an_exit_code(
    call: Call, arguments: list[str], code: int, said: str
) -> None:
    done = call(*arguments)

    assert (done.exit_code, said in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr


def test_missing_context_is_named_with_existing_ones(call: Call, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts:\n"
        "- {name: a, context: {cluster: c, user: u}}\n- {name: b, context: {cluster: c, user: u}}\n"
        "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: u, user: {}}]\n"
    )

    done = call("status", "--kubeconfig", str(config), "--context", "nope")

    assert done.exit_code == 4
    assert "there is no context 'nope'; there are: a, b" in done.stderr


def test_commands_own_version_needs_no_cluster(call: Call) -> None:
    done = call("version", "--kubeconfig", "/nonexistent")

    assert done.exit_code == 4
    assert done.stdout.startswith("kubefoundry: ")


@pytest.mark.parametrize(
    ("status", "cells"),
    [
        pytest.param({}, "-", id="nothing known"),
        pytest.param({"replicas": {"ready": 2, "desired": 3}}, "2/3", id="two of three"),
    ],
)
def test_replicas_in_the_list(status: dict[str, object], cells: str) -> None:
    obj = {"metadata": {"name": "m", "namespace": "n"}, "spec": {}, "status": status}

    head, [row] = rows([obj], everywhere=False, wide=False)

    assert row[head.index("REPLICAS")] == cells


@pytest.mark.parametrize("reported", ["Running", "Failed", "Pending", "Terminating", None])
def test_deleted_model_is_terminating_in_lists(reported: str | None) -> None:
    meta = {"name": "m", "namespace": "n"}
    live = {"metadata": meta, "spec": {}, "status": {"phase": reported} if reported else {}}
    deleted = {**live, "metadata": {**meta, "deletionTimestamp": "2026-03-01T00:00:00Z"}}

    head, [before, after] = rows([live, deleted], everywhere=False, wide=False)

    assert before[head.index("PHASE")] == (reported or "-")
    assert after[head.index("PHASE")] == phase(deleted) == "Terminating"
    assert summary(deleted).startswith("Terminating: ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("kind: [", "it is not YAML", id="not YAML"),
        pytest.param("[" * 5000, "it is nested more than 200 levels deep", id="deep"),
        pytest.param("", "has 0 ModelDeployments", id="empty"),
        pytest.param("- 1\n- 2\n", "has 0 ModelDeployments", id="a list"),
        pytest.param("kind: ModelDeployment\n", "metadata.name is missing", id="no name"),
        pytest.param(
            "apiVersion: kubefoundry.ai/v1alpha1\nkind: ModelDeployment\nmetadata: {name: m}\nspec: [1]\n",
            "is not valid",
            id="no object for a spec",
        ),
        pytest.param(
            "apiVersion: kubefoundry.ai/v1alpha1\nkind: ModelDeployment\nmetadata: {name: m}\nspec: {model: 3}\n",
            "spec.model",
            id="a wrong type",
        ),
    ],
)
def test_file_that_is_no_model_is_refused(call: Call, tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)

    done = call("explain", "-f", str(path), "--offline")

    assert done.exit_code in (1, 2)
    assert said in done.stderr
    assert done.exception is None or isinstance(done.exception, SystemExit)


@pytest.mark.parametrize("command", ["explain --offline", "render --provider direct"])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(
            {"engine": {"type": "vllm", "contexLength": 4096}},
            "no field spec.engine.contexLength; did you mean contextLength?",
            id="a typing error",
        ),
        pytest.param({"engines": {}}, "no field spec.engines; did you mean engine?", id="at the top"),
        pytest.param(
            {"podTemplate": {"metadata": {"label": {}}}},
            "no field spec.podTemplate.metadata.label; did you mean labels?",
            id="below",
        ),
        pytest.param(
            {"tolerations": [{"key": "gpu", "efect": "NoSchedule"}]},
            "no field spec.tolerations[0].efect; did you mean effect?",
            id="in a list",
        ),
        pytest.param({"zzz": None}, "no field spec.zzz\n", id="like no other, and without a value"),
    ],
)
def test_unknown_field_is_refused(
    call: Call, file: Callable[..., str], command: str, change: dict[str, Any], said: str
) -> None:
    done = call(*command.split(), "-f", file({**GPU, **change}))

    assert (done.exit_code, said in done.stderr) == (2, True), done.stderr


def test_maps_of_any_key_take_any_key(call: Call, file: Callable[..., str]) -> None:
    free = {
        "provider": {"name": "dynamo", "overrides": {"anything": {"at": ["all"]}}},
        "nodeSelector": {"example.com/pool": "a"},
        "engine": {"type": "vllm", "args": {"max-num-seqs": "8"}},
        "podTemplate": {"metadata": {"labels": {"team": "a"}}},
    }

    done = call("explain", "--offline", "-f", file({**GPU, **free}))

    assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        pytest.param("engine.contextLength", "write PATH=VALUE", id="no value"),
        pytest.param("engine..x=1", "write PATH=VALUE", id="an empty step"),
        pytest.param("engin.type=vllm", "no field spec.engin; did you mean engine?", id="no such field"),
        pytest.param("engine.type.x=1", "engine.type", id="below a text"),
        pytest.param("engine.contextLength=many", "spec.engine.contextLength", id="a wrong type"),
    ],
)
def test_impossible_edit_exits_with_its_reason(
    call: Call, file: Callable[..., str], edit: str, said: str
) -> None:
    done = call("explain", "-f", file(GPU), "--offline", "--set", edit)

    assert done.exit_code in (1, 2)
    assert said in done.stderr
    assert isinstance(done.exception, SystemExit)


def test_explain_shows_the_chosen_provider_and_needs_of_others(call: Call, file: Callable[..., str]) -> None:
    done = call("explain", "-f", file(CPU), "--offline")

    assert done.exit_code == 0
    assert done.stdout.startswith("no GPU requested → kaito")
    assert "direct: selected with image removed; would accept it if named" in done.stdout


def test_none_is_chosen(call: Call, file: Callable[..., str]) -> None:
    disaggregated = {
        "prefill": {"gpu": {"count": 1}, "memory": "1Gi"},
        "decode": {"gpu": {"count": 1}, "memory": "1Gi"},
    }
    spec = {
        "model": {"id": "org/m"},
        "engine": {"type": "llamacpp"},
        "serving": {"mode": "disaggregated"},
        "scaling": disaggregated,
    }

    done = call("explain", "-f", file(spec), "--offline")

    assert done.exit_code == 1
    assert "error" not in done.stderr


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("Qwen/Qwen3-0.6B", "qwen3-0-6b"),
        ("org/7B", "m-7b"),
        ("org/___", "m"),
        ("x" * 300, "x" * 40),
        ("Ünï/ﬁle", "le"),
    ],
)
def test_name_is_made_from_the_models(model: str, name: str) -> None:
    assert name_of(model) == name


def test_deploy_dry_run_prints_the_object(call: Call) -> None:
    done = call("deploy", "org/model", "--dry-run", "--set", "engine.contextLength=4096")

    assert done.exit_code == 0
    assert "contextLength: 4096" in done.stdout


@pytest.mark.parametrize(
    ("options", "metadata"), [((), {"name": "m"}), (("-n", "a"), {"name": "m", "namespace": "a"})]
)
def test_deploy_prints_the_namespace_option(
    call: Call, options: tuple[str, ...], metadata: dict[str, str]
) -> None:
    done = call("deploy", "org/m", "--dry-run", *options)

    assert yaml.safe_load(done.stdout)["metadata"] == metadata


def test_deploy_rejects_an_invalid_spec_without_a_cluster(call: Call) -> None:
    done = call("deploy", "org/model", "--gpus", "0", "--kubeconfig", "/nonexistent")

    assert done.exit_code == 2
    assert "vLLM engine requires GPU" in done.stderr


def test_render_uses_selected_provider(call: Call, file: Callable[..., str]) -> None:
    done = call(
        "render",
        "-f",
        file(CPU),
        "--crd",
        str(STANDINS / "kaito.yaml"),
    )

    assert (done.exit_code, "kind: Workspace" in done.stdout) == (0, True), done.stderr
    assert done.stderr.startswith("provider kaito is selected: ")


def test_render_names_helpers_as_the_controller_does(call: Call, file: Callable[..., str]) -> None:
    provider, model = installed()["kaito"], file(GPU)
    options = ("--provider", "kaito", "--crd", str(STANDINS / "kaito.yaml"), "-o", "json")
    created = made(provider, valid(from_file(model)), probed(provider, standin("kaito").document))
    [config_map] = created.helpers

    done = call("render", "-f", model, *options)

    helper, main = json.loads(done.stdout)
    assert main["inference"]["config"] == helper["metadata"]["name"] == config_map["metadata"]["name"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("llama-3.1-8b", 'metadata.name: has a dot, which no Service may have: use "llama-3-1-8b"'),
        ("Bad_Name", "metadata.name: must be lower-case letters, digits and inner dashes, at most 253"),
    ],
)
@pytest.mark.parametrize(
    "command",
    [("render", "--provider", "direct"), ("explain", "--offline"), ("deploy", "org/m", "--dry-run")],
)
def test_name_that_admission_refuses_is_refused(
    call: Callable[..., Result], file: Callable[..., str], command: tuple[str, ...], name: str, said: str
) -> None:
    named = (name,) if command[0] == "deploy" else ("-f", file(GPU, name))

    done = call(*command, *named)

    assert (done.exit_code, done.stdout, said in done.stderr) == (2, "", True), done.stderr


def test_release_names_the_file_of_its_crd(
    call: Callable[..., Result], file: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kuberay").mkdir()
    crd = STANDINS / "kuberay.yaml"
    (tmp_path / "kuberay" / "v1.0.yaml").write_text(crd.read_text())
    asked = ("render", "-f", file(GPU), "--provider", "kuberay")

    nowhere = call(*asked, "--release", "v1.0")
    monkeypatch.setenv("KUBEFOUNDRY_UPSTREAM_CRDS", str(tmp_path))
    found = call(*asked, "--release", "v1.0")
    outside = call(*asked, "--release", "../kuberay/v1.0")
    both = call(*asked, "--release", "v1.0", "--crd", str(crd))

    assert (nowhere.exit_code, "KUBEFOUNDRY_UPSTREAM_CRDS" in nowhere.stderr) == (2, True)
    assert (found.exit_code, found.stdout) == (0, call(*asked, "--crd", str(crd)).stdout)
    assert (outside.exit_code, "give a release's name" in outside.stderr) == (2, True)
    assert (both.exit_code, "not both" in both.stderr) == (2, True)
