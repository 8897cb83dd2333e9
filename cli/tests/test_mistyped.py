"""What users mistype: the line says what is wrong, and what they may have meant."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from click.testing import Result

from kubefoundry_cli.cluster import name_only
from kubefoundry_cli.failure import Failure


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("stauts",), "No such command 'stauts'; did you mean 'status'?"),
        (("xyzzy",), "No such command 'xyzzy'"),
        (("provider", "install", "kiato"), "did you mean 'kaito'?"),
        (("wait", "m", "--timeout", "nan"), "'nan' is not a number of seconds."),
        (("wait", "m", "--timeout", "inf"), "'inf' is not a number of seconds."),
        (("wait", "m", "--timeout", "-1"), "'-1' is not a number of seconds."),
        (("provider", "install", "kaito", "--wait", "soon"), "'soon' is not a number of seconds."),
        (("provider", "new", "on"), "no word that YAML reads as true, false or null"),
        (("provider", "new", "acme", "--group", "a..b"), "'a..b' cannot be an API group"),
        (("provider", "manifest", "kaito", "--image", " "), "--image is empty"),
        (("deploy", "https://huggingface.co/org/model"), "is an address; give the model's id, org/model"),
        (("deploy", "hf://org/model", "--dry-run"), "is an address"),
    ],
)
def test_one_line_says_it(call: Callable[..., Result], arguments: tuple[str, ...], said: str) -> None:
    done = call(*arguments)

    assert done.exit_code == 2, done.output
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "name", ["m", "modeldeployment/m", "modeldeployments/m", "md/m", "ModelDeployment/m"]
)
def test_a_model_may_be_named_as_kubectl_prints_it(name: str) -> None:
    assert name_only(name) == "m"


@pytest.mark.parametrize("name", ["", "md/", "pod/m", "a/b/c"])
def test_what_names_no_model_is_refused(name: str) -> None:
    with pytest.raises(Failure):
        name_only(name)
