"""What users mistype: the line says what is wrong, and what they may have meant."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from click.testing import Result

from kubefoundry_cli.cluster import name_only
from kubefoundry_cli.failure import Failure
from kubefoundry_cli.main import main


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("stauts",), "No such command 'stauts'; did you mean 'status'?"),
        (("xyzzy",), "No such command 'xyzzy'"),
        (("delete", "m"), "No such command 'delete'; write kubectl delete md NAME"),
        (("ls",), "No such command 'ls'; write kubefoundry status"),
        (("-n", "models"), "a command is missing behind the options"),
        (("provider", "install", "kiato"), "did you mean 'kaito'?"),
        (("wait", "m", "--timeout", "nan"), "'nan' is not a duration: write 90s, 20m or 1h30m."),
        (("wait", "m", "--timeout", "inf"), "'inf' is not a duration: write 90s, 20m or 1h30m."),
        (("wait", "m", "--timeout", "-1"), "'-1' is not a duration: write 90s, 20m or 1h30m."),
        (
            ("provider", "install", "kaito", "--wait", "soon"),
            "'soon' is not a duration: write 90s, 20m or 1h30m.",
        ),
        (("provider", "new", "on"), "no word that YAML reads as true, false or null"),
        (("provider", "new", "acme", "--group", "a..b"), "'a..b' cannot be an API group"),
        (("provider", "manifest", "kaito", "--image", " "), "--image is empty"),
        (("deploy", "https://huggingface.co/org/model"), "is an address; give the model's id, org/model"),
        (("deploy", "hf://org/model", "--dry-run"), "is an address"),
    ],
)
def test_mistyped_argument_is_refused_in_one_line(
    call: Callable[..., Result], arguments: tuple[str, ...], said: str
) -> None:
    done = call(*arguments)

    assert done.exit_code == 2, done.output
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["status", "--nosuch"], "No such option '--nosuch' (kubefoundry status --help)"),
        (["-n", "a", "render", "-f", "x"], "render uses no cluster: leave out -n (kubefoundry --help)"),
        (["--as", "a", "images"], "images uses no cluster: leave out --as (kubefoundry --help)"),
        (["-na", "completion", "bash"], "completion uses no cluster: leave out -na (kubefoundry --help)"),
        (["wait"], "Missing argument 'NAME' (kubefoundry wait --help)"),
        (["stauts"], "did you mean 'status'? (kubefoundry --help)"),
        (["scale", "x", "-1"], "'-1' is not a whole number of 0 or more (kubefoundry scale --help)"),
        (["provider", "install"], "Missing argument 'PROVIDER' (kubefoundry provider install --help)"),
    ],
)
def test_usage_error_is_one_line_like_every_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    monkeypatch.setattr("sys.argv", ["kubefoundry", *arguments])

    with pytest.raises(SystemExit) as ended:
        main()

    lines = capsys.readouterr().err.splitlines()
    assert (ended.value.code, len(lines)) == (2, 1), lines
    assert lines[0].startswith("error: ") and lines[0].endswith(said)


def test_no_arguments_print_the_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["kubefoundry"])

    with pytest.raises(SystemExit) as ended:
        main()

    text = capsys.readouterr().err
    assert (ended.value.code, text.startswith("Usage: "), "--help)" in text) == (2, True, False), text


@pytest.mark.parametrize(
    "kind",
    [
        *("md", "modeldeployment", "modeldeployments", "ModelDeployment", "MODELDEPLOYMENT"),
        *("md.kubefoundry.ai", "modeldeployment.kubefoundry.ai", "ModelDeployment.kubefoundry.ai"),
        *("modeldeployments.v1alpha1.kubefoundry.ai", "md.v1alpha1.kubefoundry.ai", "modeldeployments.kube"),
    ],
)
def test_model_may_be_named_as_kubectl_names_it(kind: str) -> None:
    assert name_only(f"{kind}/m") == "m"


def test_model_may_be_named_without_kind() -> None:
    assert name_only("m") == "m"


@pytest.mark.parametrize(
    "name",
    [
        *("", "md/", "pod/m", "a/b/c", "modeldeployments.other.io/m", "modeldeployments./m"),
        *("modeldeployments.kubefoundry.ai.x/m", "modeldeployments.v1alpha1./m", "/m"),
    ],
)
def test_other_text_is_no_name_of_a_model(name: str) -> None:
    with pytest.raises(Failure):
        name_only(name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("modeldeploymnet/m", "; did you mean 'modeldeployment'?"),
        ("pod/m", "write NAME or modeldeployment/NAME"),
    ],
)
def test_unknown_kind_is_answered_with_the_closest_one(name: str, expected: str) -> None:
    with pytest.raises(Failure) as failed:
        name_only(name)

    assert failed.value.message.endswith(expected)


@pytest.mark.parametrize("options", [("-n", "a"), ("--context=x",), ("-na", "--as", "b")])
@pytest.mark.parametrize("help_option", ["-h", "--help"])
def test_help_takes_options_that_precede_it(
    call: Callable[..., Result], options: tuple[str, ...], help_option: str
) -> None:
    assert call(*options, help_option).stdout == call("--help").stdout


def test_commit_is_in_the_version_for_programs_only(call: Callable[..., Result]) -> None:
    plain, detailed = call("version", "--client"), call("version", "--client", "-o", "json")

    assert plain.stdout.count("\n") == 1 and "commit" not in plain.stdout
    assert re.fullmatch(r"[0-9a-f]{12}(-dirty)?", json.loads(detailed.stdout)["commit"])


def test_version_without_a_cluster_prints_its_own_in_every_form(call: Callable[..., Result]) -> None:
    for form in ("table", "json", "yaml"):
        done = call("version", "-o", form, "--kubeconfig", "/nonexistent")

        assert (done.exit_code, "kubefoundry" in done.stdout) == (4, True), (form, done.stderr)
