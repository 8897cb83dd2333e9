"""`kubefoundry-conformance provider` on our providers, on the example, and with unusable input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kubefoundry_conformance.cases import Unusable
from kubefoundry_conformance.cluster import waiting
from kubefoundry_conformance.cluster.settings import QUIET, RESTARTED
from kubefoundry_conformance.functions.subject import load_provider
from kubefoundry_conformance.main import main

ROOT = Path(__file__).resolve().parents[2]
WIDGETS = "kubefoundry_widgets.provider:with_defaults"
OURS = {
    **{
        name: (name, f"dev/simulators/crds/{name}.yaml", f"providers/{name}/cases.yaml")
        for name in ("kaito", "dynamo")
    },
    "kuberay": ("kuberay", "dev/simulators/crds/kuberay.yaml", "providers/kuberay/cases.yaml"),
    "direct": ("direct", None, "providers/direct/cases.yaml"),
    "widgets": (WIDGETS, "examples/provider/widgets.crd.yaml", "examples/provider/cases.yaml"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OURS)
def test_own_providers_pass(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    functions, crd, cases = OURS[name]
    report = tmp_path / "report.json"
    arguments = [
        "--functions",
        functions,
        "--cases",
        str(ROOT / cases),
        "--json",
        str(report),
        "--examples",
        "60",
    ]

    code = main(["provider", *arguments, *(["--crd", str(ROOT / crd)] if crd else [])])

    assert code == 0, capsys.readouterr().out
    document = json.loads(report.read_text(encoding="utf-8"))
    assert (document["subject"], document["conformant"]) == (name, True)
    assert sum(result["outcome"] == "passed" for result in document["results"]) >= 18


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--cases", "x.yaml"], "say what to check"),
        (["--cases", "x.yaml", "--functions", "nowhere:at_all"], "no provider at nowhere:at_all"),
        (["--cases", "x.yaml", "--functions", "json:dumps"], "no provider at json:dumps"),
        (
            ["--cases", "x.yaml", "--functions", "nobody"],
            "install the package again, or name a MODULE:FUNCTION",
        ),
        (["--cases", "x.yaml", "--functions", "sys:exit"], "no provider at sys:exit: it raises SystemExit"),
        (["--cases", "x.yaml", "--functions", "json:loads"], "has to return a Provider without arguments"),
        (["--cases", "phase.yaml", "--functions", "direct"], "statuses.0.expect.phase: Input should be"),
        (["--cases", "x.yaml", "--functions", WIDGETS], "give the upstream CRD widgets.example.com"),
        (["--cases", "x.yaml", "--functions", WIDGETS, "--crd", "gone.yaml"], "cannot read gone.yaml"),
        (["--cases", "gone.yaml", "--functions", "direct"], "cannot read gone.yaml"),
        (
            ["--cases", "empty.yaml", "--functions", "direct"],
            "empty.yaml: the file: Input should be a valid dict",
        ),
        (["--cases", "invalid.yaml", "--functions", "direct"], "invalid.yaml: specs.gpu: spec.model.id"),
        (
            ["--cases", "empty.yaml", "--functions", "direct", "--kubeconfig", "x"],
            "give --manifest FILE, too",
        ),
        (["--cases", "x.yaml", "--functions", "direct", "--json", "gone/r.json"], "cannot write gone/r.json"),
        (["--cases", "unknown.yaml", "--functions", "direct"], "unknown.yaml: statsues: Extra inputs"),
        (
            ["--cases", "x.yaml", "--functions", "direct", "--functions-command", "x"],
            "give one of --functions, --functions-command and --mapping",
        ),
        (
            ["--cases", "x.yaml", "--functions-command", "gone.sh"],
            "no provider: its program gone.sh cannot be started: ",
        ),
        (["--cases", "x.yaml", "--functions-command", "cat"], "unknown key 'function'; try the program with"),
        (["--cases", "x.yaml", "--functions-command", "'cat"], 'the command "\'cat" cannot be read: '),
        (["--cases", "x.yaml", "--functions-command", " "], "there is no program: give --command"),
    ],
)
def test_unusable_option_is_reported_in_one_line(
    arguments: list[str],
    expected: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.yaml").touch()
    (tmp_path / "invalid.yaml").write_text("specs: {gpu: {engine: {type: vllm}}}")
    phase = "statuses: [{name: up, expect: {phase: Runing, reason: Failed}}]"
    (tmp_path / "phase.yaml").write_text(f"specs: {{gpu: {{}}}}\n{phase}")
    (tmp_path / "unknown.yaml").write_text("specs: {gpu: {}}\nstatsues: []")

    code = main(["provider", *arguments])

    error = capsys.readouterr().err
    assert (code, error.count("\n")) == (2, 1)
    assert expected in error


@pytest.mark.parametrize(("field", "named"), [("engines", "vlm"), ("serving_modes", "pooled")])
def test_provider_with_unknown_capability_is_refused(
    field: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = f"misspelt_{field}"
    (tmp_path / f"{module}.py").write_text(
        "from dataclasses import replace\n"
        "from kubefoundry_widgets.provider import with_defaults\n"
        "sound = with_defaults()\n"
        f"wrong = replace(sound, capabilities=replace(sound.capabilities, {field}=({named!r},)))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(Unusable, match=rf"capabilities\.{field} of provider widgets names {named}, which"):
        load_provider(f"{module}:wrong")


def test_wrong_case_fails_and_is_reported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    cases = tmp_path / "cases.yaml"
    text = (ROOT / "examples/provider/cases.yaml").read_text(encoding="utf-8")
    cases.write_text(text.replace("phase: Failed, reason: Failed", "phase: Running, reason: DeploymentReady"))
    crd = str(ROOT / "examples/provider/widgets.crd.yaml")

    code = main(
        [
            "provider",
            "--functions",
            WIDGETS,
            "--crd",
            crd,
            "--cases",
            str(cases),
            "--examples",
            "5",
            "--badge",
        ]
    )

    output = capsys.readouterr().out
    assert code == 1
    assert "seen:     broken: Failed/Failed" in output
    assert "1%20failed-red" in output


@pytest.mark.parametrize("factor", ["0", "-1", "0.5", "many"])
def test_patience_is_refused_below_one(factor: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["provider", "--cases", "none", "--patience", factor])

    assert f"'{factor}' is not a whole number of at least 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(waiting.SECONDS, 6 * waiting.SECONDS), (RESTARTED, 6 * RESTARTED), (QUIET, QUIET)],
    ids=["a state", "a state after a restart", "a forbidden state"],
)
def test_patience_multiplies_waits_for_a_state(
    seconds: float, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "_patience", 1.0)

    waiting.set_patience(6)

    assert waiting.longest(seconds) == expected
