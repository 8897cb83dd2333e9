"""Names that no object can have: each command refuses them before it asks the cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from click.testing import Result

from kubefoundry_cli.failure import Exit
from support.deployments import GPU, model_deployment
from support.fake_server import Answers, serving

Call = Callable[..., Result]

MODEL: Final = (
    *("status NAME", "doctor NAME", "wait NAME --timeout 0", "chat NAME hi", "curl NAME", "logs NAME"),
    *("scale NAME 2", "pause NAME", "resume NAME", "reselect NAME", "refresh NAME", "explain NAME"),
    *("plan NAME", "eject NAME --yes", "deploy o/m NAME --yes", "import rayservice/NAME --yes"),
    "status modeldeployment/NAME",
)
SECRET: Final = ("deploy o/m --yes --hf-secret NAME",)
NAMESPACE: Final = (
    *("status -n NAME", "status m -n NAME", "doctor -n NAME", "wait m --timeout 0 -n NAME", "logs m -n NAME"),
    *("scale m 2 -n NAME", "explain m -n NAME", "plan m -n NAME", "deploy o/m --yes -n NAME"),
    *("deploy o/m --dry-run -n NAME", "import rayservice/m --yes -n NAME", "provider list -n NAME"),
    *("controller status -n NAME", "provider manifest direct --image i --namespace NAME"),
)
PROVIDER: Final = (
    *(
        "deploy o/m --yes --provider NAME",
        "import rayservice/m --provider NAME",
        "plan -f FILE --provider NAME",
    ),
    *("render -f FILE --provider NAME", "provider install NAME --yes", "provider uninstall NAME --yes"),
    *("provider new NAME", "provider manifest NAME --image i", "compat NAME --release x"),
)

IMPOSSIBLE: Final = {
    "slash": "a/b",
    "dots": "..",
    "upper case": "Up",
    "space": "a b",
    "long": "x" * 300,
    "bell": "a\x07b",
    "line break": "a\nb",
    "dash": "a-",
    "letter of another alphabet": "ü",
}
EMPTY: Final = {"empty": ""}


class Asked(Answers):
    """A cluster without objects that records the requests."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def to(self, path: str) -> tuple[int, Any]:
        """Record the path, and return the answer."""
        self.asked.append(path)
        return super().to(path)


@pytest.mark.parametrize("name", IMPOSSIBLE | EMPTY)
@pytest.mark.parametrize("command", [*MODEL, *SECRET, *PROVIDER])
def test_impossible_name_is_a_usage_error(
    call: Call, file: Callable[..., str], tmp_path: Path, command: str, name: str
) -> None:
    _refused(call, file(GPU), tmp_path, command, (IMPOSSIBLE | EMPTY)[name])


@pytest.mark.parametrize("name", IMPOSSIBLE)
@pytest.mark.parametrize("command", NAMESPACE)
def test_impossible_namespace_is_a_usage_error(
    call: Call, file: Callable[..., str], tmp_path: Path, command: str, name: str
) -> None:
    """An empty namespace is that of the context, as for kubectl."""
    said = _refused(call, file(GPU), tmp_path, command, IMPOSSIBLE[name])

    assert "cannot be a namespace's name: use lower-case letters, digits and inner dashes" in said


def _refused(call: Call, file: str, folder: Path, command: str, name: str) -> str:
    """Run the command with the name, and return its message. Fail unless it is a usage error without a request."""
    answers = Asked()
    words = [word.replace("NAME", name).replace("FILE", file) for word in command.split()]
    with serving(answers, folder) as kubeconfig:
        is_local = command.startswith(("render", "provider new", "provider manifest"))
        done = call(*words, *([] if is_local else ["--kubeconfig", str(kubeconfig)]))

    assert done.exit_code == Exit.USAGE, done.output
    assert done.stderr.count("\n") == 1, done.stderr
    assert len(done.stderr) < 400, done.stderr
    assert "create namespace" not in done.stderr
    assert answers.asked == []
    return done.stderr


@pytest.mark.parametrize("name", IMPOSSIBLE)
@pytest.mark.parametrize(
    "command", ["plan -f FILE", "explain -f FILE", "explain -f FILE --offline", "render -f FILE"]
)
def test_impossible_namespace_of_a_file_is_a_usage_error(
    call: Call, tmp_path: Path, command: str, name: str
) -> None:
    document = model_deployment("m", IMPOSSIBLE[name], GPU)
    (tmp_path / "m.yaml").write_text(yaml.safe_dump(document))

    said = _refused(call, str(tmp_path / "m.yaml"), tmp_path, command, "")

    assert "cannot be a namespace's name" in said
    assert "metadata.namespace" in said


@pytest.mark.parametrize(
    "path", ["..", "/../../pods", "/v1/..", "/v1/%2e%2e/%2E%2e/pods", "/./v1", "/a/..?b=c"]
)
def test_path_that_leads_away_from_the_model_is_a_usage_error(call: Call, tmp_path: Path, path: str) -> None:
    _refused(call, "", tmp_path, f"curl m {path}", "")


@pytest.mark.parametrize("path", ["/v1/models", "v1/a..b", "/v1?x=/../y"])
def test_path_with_dots_inside_a_step_is_requested(call: Call, tmp_path: Path, path: str) -> None:
    answers = Asked()
    with serving(answers, tmp_path) as kubeconfig:
        call("curl", "m", path, "--kubeconfig", str(kubeconfig))

    assert answers.asked != []


@pytest.mark.parametrize(
    "command", [command for command in MODEL if not command.startswith(("deploy", "import"))]
)
def test_message_says_which_names_are_possible(call: Call, tmp_path: Path, command: str) -> None:
    with serving(Asked(), tmp_path) as kubeconfig:
        done = call(*command.replace("NAME", "Llama").split(), "--kubeconfig", str(kubeconfig))

    assert (
        "Llama cannot be a model's name: use lower-case letters, digits, inner dashes and dots" in done.stderr
    )


def test_impossible_namespace_of_the_context_is_named(call: Call, tmp_path: Path) -> None:
    answers = Asked()
    with serving(answers, tmp_path) as kubeconfig:
        kubeconfig.write_text(kubeconfig.read_text().replace("namespace: models", "namespace: Bad_NS"))
        done = call("status", "--kubeconfig", str(kubeconfig))

    assert (done.exit_code, answers.asked) == (Exit.USAGE, [])
    assert "Bad_NS cannot be a namespace's name" in done.stderr
    assert "the kubeconfig's context names it, and -n another one" in done.stderr


@pytest.mark.parametrize("command", ["status", "doctor"])
def test_namespace_option_replaces_an_impossible_one(call: Call, tmp_path: Path, command: str) -> None:
    answers = Asked()
    with serving(answers, tmp_path) as kubeconfig:
        kubeconfig.write_text(kubeconfig.read_text().replace("namespace: models", "namespace: Bad_NS"))
        done = call(command, "-n", "models", "--kubeconfig", str(kubeconfig))

    assert "cannot be a namespace's name" not in done.stderr
    assert answers.asked != []
