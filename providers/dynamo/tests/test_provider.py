"""The provider as it registers itself, and the flags of its process."""

from __future__ import annotations

import argparse

import pytest

from kubefoundry_dynamo import main
from kubefoundry_dynamo.provider import build
from kubefoundry_dynamo.settings import Settings, add_arguments, from_arguments
from kubefoundry_dynamo.versions import Version


def parsed(*flags: str, **default_images: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(flags, argparse.Namespace(default_images=default_images))


def test_registration() -> None:
    provider = build(parsed())

    assert (provider.name, provider.title) == ("dynamo", "Dynamo")
    assert provider.capabilities.engines == ("vllm", "sglang", "trtllm")
    assert provider.capabilities.serving_modes == ("aggregated", "disaggregated")
    assert (provider.capabilities.cpu_support, provider.capabilities.gpu_support) == (False, True)


def test_selection_rules_are_the_designs() -> None:
    rules = [(rule.priority, rule.condition, rule.reason) for rule in build(parsed()).selection_rules]

    assert rules == [
        (90, "spec.engine.type == 'sglang'", None),
        (90, "spec.engine.type == 'trtllm'", None),
        (
            80,
            "spec.serving.mode == 'disaggregated'",
            "mode=disaggregated → dynamo (best disaggregated support)",
        ),
        (
            50,
            "has(spec.resources.gpu) && spec.resources.gpu.count > 0",
            "default → dynamo (GPU inference default)",
        ),
    ]


def test_flags() -> None:
    arguments = parsed("--runtime-version", "1.4.2", vllm="mirror/vllm:1")

    assert from_arguments(arguments) == Settings({"vllm": "mirror/vllm:1"}, Version(1, 4, 2))
    assert from_arguments(parsed()) == Settings({}, None)


def test_runtime_version_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEFOUNDRY_RUNTIME_VERSION", "1.3.0")

    assert from_arguments(parsed()).runtime_version == Version(1, 3, 0)


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--default-image", "llamacpp=r/i:1"], "Dynamo runs sglang, trtllm, vllm only"),
        (["--runtime-version", "latest"], "'latest' is not a MAJOR.MINOR.PATCH version"),
    ],
)
def test_bad_flag_ends_the_process_with_one_line(
    flags: list[str], text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["kubefoundry-provider-dynamo", *flags])

    with pytest.raises(SystemExit) as ended:
        main.main()

    assert ended.value.code == 1
    message = capsys.readouterr().err
    assert text in message
    assert message.count("\n") == 1
