"""The Widget provider in shell, Node and Go: the kit accepts each, and each does what the one in Python does."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubefoundry_conformance.main import main
from kubefoundry_sdk import Object, Provider, Schema
from kubefoundry_sdk._functions import main as functions_process
from kubefoundry_sdk._functions.client import Client
from kubefoundry_sdk._functions.main import command, described, installed
from kubefoundry_sdk._functions.messages import Settings
from kubefoundry_sdk.testing import deployment, specs
from kubefoundry_widgets.provider import provider as widgets
from support.sampled_cases import examples

ROOT = Path(__file__).resolve().parents[2]
FUNCTIONS = ROOT / "examples" / "functions"
SCHEMA = Schema("example.com/v1")
IMAGES = {"vllm": "example.com/vllm:1"}
TOOLS = {"shell": "jq", "node": "node", "go": "go"}
LANGUAGES = [
    pytest.param(
        language, marks=pytest.mark.skipif(shutil.which(tool) is None, reason=f"there is no {tool} here")
    )
    for language, tool in TOOLS.items()
]


@pytest.fixture(scope="session")
def go_program(tmp_path_factory: pytest.TempPathFactory) -> str:
    program = tmp_path_factory.mktemp("go") / "provider"
    build = ["go", "build", "-o", str(program), "."]
    subprocess.run(build, cwd=FUNCTIONS / "go", check=True, capture_output=True, text=True)
    return str(program)


@pytest.fixture
def program(request: pytest.FixtureRequest) -> str:
    """Return the command of the example in a language."""
    if request.param == "go":
        return str(request.getfixturevalue("go_program"))
    return {
        "shell": str(FUNCTIONS / "shell" / "provider.sh"),
        "node": f"node {FUNCTIONS / 'node' / 'provider.mjs'}",
    }[request.param]


@pytest.fixture
def provider(program: str) -> Iterator[Provider]:
    client = Client(command(program), Settings(default_images=IMAGES))
    yield described(client, "widgets")
    client.close()


@pytest.mark.slow
@pytest.mark.parametrize("program", LANGUAGES, indirect=True)
def test_example_of_functions_passes_the_kit(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--crd", "examples/provider/widgets.crd.yaml", "--cases", "examples/provider/cases.yaml"]
    paths = [str(ROOT / text) if "/" in text else text for text in files]

    code = main(["provider", "--functions-command", program, *paths, "--examples", "12"])

    report = capsys.readouterr().out
    assert code == 0, report
    assert "19 passed, 0 failed" in report


@pytest.mark.slow
@pytest.mark.parametrize("program", LANGUAGES, indirect=True)
@settings(
    deadline=None, max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(spec=specs(engines=["vllm"], modes=["aggregated"], provider=None), image=st.booleans())
def test_example_renders_as_the_python_one(provider: Provider, spec: dict[str, Any], image: bool) -> None:
    model, python = (
        deployment({**spec, **({"image": "example.com/mine:2"} if image else {})}),
        widgets(IMAGES),
    )

    problems = provider.supports(model, SCHEMA)

    assert list(problems) == list(python.supports(model, SCHEMA))
    if not problems:
        assert provider.render(model, SCHEMA) == python.render(model, SCHEMA)


@pytest.mark.slow
@pytest.mark.parametrize("program", LANGUAGES, indirect=True)
def test_example_observes_as_the_python_one(provider: Provider) -> None:
    states: list[Any] = ["Starting", "Serving", "Broken", "Dancing", "", None, ["Serving"], {"a": 1}, 7]
    readies: list[Any] = [0, 1, 2**31 - 1, 2**31, -1, 1.5, "1", None, True, [1]]
    statuses = [
        {"state": state, "ready": ready, "message": text}
        for state in states
        for ready in readies
        for text in ("", "out of widgets", 5)
    ]
    python = widgets(IMAGES)
    for replicas in (0, 1):
        model = deployment({"engine": {"type": "vllm"}, "scaling": {"replicas": replicas}})
        lives: list[Object] = [{}, *({"status": status} for status in (None, "up", *statuses))]
        for live in lives:
            assert provider.observe(model, live) == python.observe(model, live), live


@pytest.mark.slow
@pytest.mark.parametrize("program", LANGUAGES, indirect=True)
def test_unknown_function_is_an_error_of_the_example(provider: Provider, program: str) -> None:
    client = Client(command(program), Settings())
    client.describe()

    with pytest.raises(Exception, match="mustRecreate failed: "):
        client.call("mustRecreate", object={})

    client.close()


def test_functions_manifest_is_generated() -> None:
    folder = FUNCTIONS / "shell"
    client = Client([str(folder / "provider.sh")], Settings())
    documents = list(yaml.safe_load_all((folder / "manifest.yaml").read_text()))
    [image] = [
        document["spec"]["template"]["spec"]["containers"][0]["image"]
        for document in documents
        if document["kind"] == "Deployment"
    ]

    generated = installed(described(client, None), image, ["--command=/provider/provider.sh"])

    client.close()
    assert documents == generated, "kubefoundry-provider-functions … --print-manifest IMAGE"


def test_functions_manifest_keeps_the_given_flags(capsys: pytest.CaptureFixture[str]) -> None:
    program = str(FUNCTIONS / "shell" / "provider.sh")
    given = ["--call-timeout=20s", "--default-image=vllm=x/y:1", "--set=pool=a100"]

    with pytest.raises(SystemExit):
        functions_process.main(
            ["--name=widgets", f"--command={program}", *given, "--print-manifest=reg/img:1"]
        )

    [container] = [
        document["spec"]["template"]["spec"]["containers"][0]
        for document in yaml.safe_load_all(capsys.readouterr().out)
        if document["kind"] == "Deployment"
    ]
    assert container["args"][:5] == [
        "--name=widgets",
        "--default-image=vllm=x/y:1",
        "--call-timeout=20.0",
        f"--command={program}",
        "--set=pool=a100",
    ]
