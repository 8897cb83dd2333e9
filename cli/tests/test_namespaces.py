"""A namespace that does not exist is named as the reason for an empty answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import Result

from kubefoundry_cli.output import LISTS
from support.fake_server import Answers, serving

EMPTY: Final = {
    plural: list[Any]()
    for plural in ("modeldeployments", "deployments", "leases", "events", "inferenceproviderconfigs")
}
MISSING: Final = "namespace nosuch does not exist"


class Namespaces(Answers):
    """A cluster without models; `code` answers a read of the namespace."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.objects = EMPTY
        self.code = code
        self.reads = 0

    def to(self, path: str) -> tuple[int, Any]:
        if not path.startswith("/api/v1/namespaces/nosuch") or path.count("/") > 4:
            return super().to(path)
        self.reads += 1
        status = {"kind": "Status", "code": self.code, "message": "namespaces"}
        return self.code, {"metadata": {"name": "nosuch"}} if self.code == 200 else status


@pytest.fixture
def ask(call: Callable[..., Result], tmp_path: Path) -> Callable[..., Result]:
    """Run a command in namespace nosuch: answers, arguments -> result."""

    def run(answers: Answers, *arguments: str) -> Result:
        with serving(answers, tmp_path) as kubeconfig:
            return call(*arguments, "-n", "nosuch", "--kubeconfig", str(kubeconfig))

    return run


@pytest.mark.parametrize(
    "command",
    [("status", "m"), ("doctor",), ("wait", "m"), ("plan", "m")],
)
def test_missing_namespace_is_the_reason(ask: Callable[..., Result], command: tuple[str, ...]) -> None:
    answers = Namespaces(404)

    done = ask(answers, *command)

    assert (done.exit_code, MISSING in done.output, "deploy MODEL" in done.output) == (1, True, False), (
        done.output
    )
    assert answers.reads == 1


@pytest.mark.parametrize("code", [200, 403, 500])
@pytest.mark.parametrize("command", [("status",), ("status", "m"), ("doctor",)])
def test_namespace_that_may_exist_is_not_called_missing(
    ask: Callable[..., Result], command: tuple[str, ...], code: int
) -> None:
    done = ask(Namespaces(code), *command)

    assert "namespace nosuch" in done.output
    assert MISSING not in done.output


@pytest.mark.parametrize("form", LISTS)
def test_list_of_a_missing_namespace_is_empty_in_every_form(ask: Callable[..., Result], form: str) -> None:
    done = ask(Namespaces(404), "status", "-o", form)

    assert (done.exit_code, MISSING in done.stderr, "deploy MODEL" in done.output) == (0, True, False), done
    assert {"json": '"items": []', "yaml": "items: []"}.get(form, "") in done.stdout


def test_list_of_all_namespaces_reads_none(call: Callable[..., Result], tmp_path: Path) -> None:
    answers = Namespaces(404)
    with serving(answers, tmp_path) as kubeconfig:
        done = call("status", "-A", "-o", "json", "--kubeconfig", str(kubeconfig))

    assert (done.exit_code, answers.reads) == (0, 0)
