"""What is written for vLLM and SGLang is what their own servers take, by the options that their wheels define."""

from __future__ import annotations

import argparse
import json
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from kubefoundry_direct.engines.known import engine_of
from kubefoundry_direct.settings import ON_NVIDIA
from kubefoundry_sdk._api import engine_args, flag_names
from kubefoundry_sdk._api.validation import validate
from kubefoundry_sdk.testing.generated import deployment

OPTIONS: Final = Path(__file__).parents[3] / "tests" / "engines"
FILES: Final = {file.stem.partition("-")[0]: file for file in OPTIONS.glob("*.json")}


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise AssertionError(message)


def options(engine: str) -> dict[str, str]:
    """The forms of long options."""
    return {flag: form for flag, form in json.loads(FILES[engine].read_text()).items() if flag[:2] == "--"}


@cache
def parser(engine: str) -> Parser:
    argument_parser = Parser(allow_abbrev=False)
    if engine == "vllm":
        argument_parser.add_argument("model")
    actions: dict[str, dict[str, Any]] = {
        "value": {},
        "switch": {"action": "store_true"},
        "both": {"action": argparse.BooleanOptionalAction, "default": None},
    }
    for flag, form in options(engine).items():
        if flag != "--help":
            argument_parser.add_argument(flag, dest=flag, **actions[form])
    return argument_parser


def parsed(name: str, **spec: Any) -> dict[str, Any]:
    """What the server would read of the command line. Fails on an option that it does not have."""
    full = {
        "model": {"id": "org/m", "servedName": "served"},
        "resources": {"gpu": {"count": 4}},
        **spec,
        "engine": {"type": name, "contextLength": 4096, "trustRemoteCode": True, **spec.get("engine", {})},
    }
    typed = deployment(full).spec
    line = engine_of(typed).arguments(typed)
    return vars(parser(name).parse_args(undotted(line) if name == "vllm" else line))


def undotted(line: list[str]) -> list[str]:
    """The command line as vLLM's parser reads dotted flags (vllm/utils/argparse_utils.py)."""
    rest: list[str] = []
    nested: dict[str, dict[str, Any]] = {}
    entries = iter(line)
    for entry in entries:
        if not (entry.startswith("--") and "." in entry):
            rest.append(entry)
            continue
        flag, *keys, last = entry.split(".")
        inner = nested.setdefault(flag, {})
        for key in keys:
            inner = inner.setdefault(key, {})
        text = next(entries)
        try:
            inner[last] = json.loads(text)
        except ValueError:
            inner[last] = text
    return [*rest, *(word for flag, value in nested.items() for word in (flag, json.dumps(value)))]


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_they_are_those_of_the_default_image(engine: str) -> None:
    assert ON_NVIDIA[engine].rpartition(":v")[2] == FILES[engine].stem.partition("-")[2]


def test_every_field_reaches_vllm() -> None:
    options = parsed("vllm")

    assert {name: value for name, value in options.items() if value is not None and value is not False} == {
        "model": "org/m",
        "--served-model-name": "served",
        "--port": "8000",
        "--max-model-len": "4096",
        "--trust-remote-code": True,
        "--tensor-parallel-size": "4",
    }


def test_every_field_reaches_sglang() -> None:
    options = parsed("sglang")

    assert {name: value for name, value in options.items() if value is not None and value is not False} == {
        "--model-path": "org/m",
        "--served-model-name": "served",
        "--host": "0.0.0.0",
        "--port": "8000",
        "--context-length": "4096",
        "--trust-remote-code": True,
        "--tensor-parallel-size": "4",
    }


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_code_of_the_model_is_not_trusted_unless_it_is_said(engine: str) -> None:
    assert not parsed(engine, engine={"trustRemoteCode": False})["--trust-remote-code"]


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_every_option_can_be_an_argument(engine: str) -> None:
    ours = {"model", "model-path", "served-model-name", "host", "port", "max-model-len", "context-length"}
    ours |= {"trust-remote-code", "help", "config"}
    refused = []
    for flag, form in options(engine).items():
        name = flag[2:]
        if name in ours or name.endswith("-size") or flag.startswith("--no-"):
            continue
        values = {"value": ["x"], "switch": ["", "true", "false"], "both": ["", "true", "false"]}[form]
        for value in values:
            option = parsed(engine, engine={"args": {name: value}})[flag]
            expected = {"": True, "true": True, "false": False, "x": "x"}[value]
            if bool(option) != bool(expected) or (form == "value" and option != expected):
                refused.append((flag, value, option))
    assert refused == []


def test_switches_unlike_the_others_are_known() -> None:
    forms = {engine: options(engine) for engine in ("vllm", "sglang")}
    odd = {"vllm": "switch", "sglang": "both"}

    assert {
        engine: {flag[2:] for flag, form in forms[engine].items() if form == odd[engine]} for engine in forms
    } == engine_args.ODD


def test_dotted_flags_keep_their_keys() -> None:
    args = {
        "hf_overrides.rope_scaling.rope_type": "yarn",
        "hf-overrides.rope_scaling.factor": "4.0",
        "hf-overrides.use_cache": "true",
        "hf-overrides.tie_word_embeddings": "false",
        "hf-overrides.scale_attn": "",
        "cc.cudagraph_mode": "NONE",
    }

    options = parsed("vllm", engine={"args": args})

    assert json.loads(options["--hf-overrides"]) == {
        "rope_scaling": {"rope_type": "yarn", "factor": 4.0},
        "use_cache": True,
        "tie_word_embeddings": False,
        "scale_attn": True,
    }
    assert json.loads(options["--compilation-config"]) == {"cudagraph_mode": "NONE"}


def test_short_flags_are_those_of_the_parser() -> None:
    table = json.loads(FILES["vllm"].read_text())
    defined = {flag[1:]: long[2:] for flag, long in table.items() if flag[:2] != "--"}

    assert flag_names.LONG["vllm"] == {**defined, "O": "optimization-level"}
    assert set(flag_names.LONG["vllm"].values()) <= {flag[2:] for flag in options("vllm")}


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_short_names_of_long_flags_are_known(engine: str) -> None:
    brief = {flag[2:] for flag in options(engine) if len(flag) - 2 <= flag_names.SHORT}

    assert brief == flag_names.SHORT_LONG.get(engine, frozenset())


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_abbreviation_of_a_flag_of_a_field_is_refused(engine: str) -> None:
    whole = [
        *flag_names.COUNTED,
        *(flag for flags in engine_args.FIELD_FLAGS[engine].values() for flag in flags),
    ]
    exact = {*whole, *flag_names.LONG[engine], *(flag[2:] for flag in options(engine))}
    abbreviations = {flag[:end].rstrip("-") for flag in whole for end in range(4, len(flag))} - exact

    accepted = {flag for flag in exact | abbreviations if not is_completed(engine, flag)}

    assert accepted == exact


def is_completed(engine: str, flag: str) -> bool:
    gpu = {"gpu": {"count": 1}}
    spec = {"model": {"id": "org/m"}, "engine": {"type": engine, "args": {flag: "1"}}, "resources": gpu}
    return any("abbreviation" in problem.message for problem in validate(spec))
