"""Checks a ModelDeployment spec, warns about it, and fills in its defaults.

One source for the validating webhook, the mutating webhook and the reconcile-time check (contract §2). The CRD has
the same schema and rules; `spec_limits`, `engine_args`, the keys of labels and a name that looks like a flag are
checked here only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, Final

from kubefoundry_sdk._api import engine_args, extra_args, quantity, spec_limits, structure
from kubefoundry_sdk._api.foreign_text import shown
from kubefoundry_sdk._api.formats import MEANINGS, QUALIFIED_NAME
from kubefoundry_sdk._api.managed_claims import templates
from kubefoundry_sdk._api.rules import RULES, Rule
from kubefoundry_sdk._api.structure import Problem as Problem
from kubefoundry_sdk._api.structure import Schema

Spec = dict[str, Any]

SMALLEST: Final = 2**20
"""Bytes of memory below which no engine starts."""

COMPONENTS: Final = ("prefill", "decode")
"""Fields of `spec.scaling` in disaggregated mode."""

NAMED: Final = 20
"""The most problems that are reported: a spec of a megabyte may have a million."""

_KEY: Final = re.compile(QUALIFIED_NAME)
_HUB: Final = re.compile(r"(https?://)?(www\.)?(huggingface|hf)\.co(/|$)", re.IGNORECASE)
_FORM: Final = "write ORGANIZATION/MODEL, such as Qwen/Qwen3-0.6B"


def schema() -> Schema:
    """Return the structural schema of a ModelDeployment's spec, without its rules."""
    return structure.of_spec("modeldeployment")


def default(spec: Spec) -> Spec:
    """Return a copy with the CRD's defaults, and without nulls, as the API server would store it."""
    completed: Spec = structure.defaulted(spec, schema())
    return completed


def validate(spec: Spec) -> list[Problem]:
    """Return up to NAMED problems of a spec, with or without its defaults; empty if the spec is valid.

    If it is too deep or too large, only that is reported. If types, enums or ranges are wrong, only these problems
    are reported, because the rules need valid values.
    """
    if beyond := spec_limits.too_deep(spec) or spec_limits.too_large(spec):
        return [Problem(*beyond)]
    if not isinstance(spec, dict):
        return list(structure.problems(spec, schema(), "spec"))
    complete = default(spec)
    wrong_values = _first(structure.problems(complete, schema(), "spec"))
    if wrong_values:
        return wrong_values
    broken = (problem for rule in RULES for problem in _broken(rule, complete))
    return _first(
        chain(broken, _derived_name(complete), _keys(complete), _cpu_limit(complete), _claim_sizes(complete))
    ) or _command_line(complete)


def _command_line(spec: Spec) -> list[Problem]:
    """Return the problems of the engine's flags; without an engine, those that every engine has."""
    engines = [spec["engine"]["type"]] if "type" in spec["engine"] else engine_args.ENGINES
    found = []
    for engine in engines:
        filled = {**spec, "engine": {**spec["engine"], "type": engine}}
        found.append(_first(chain(engine_args.problems(filled), extra_args.problems(filled))))
    return [problem for problem in found[0] if all(problem in others for others in found)]


def name_problem(name: str) -> Problem | None:
    """Return why a new ModelDeployment may not have the name: a Service's name is a DNS label, without dots."""
    if "." not in name:
        return None
    return Problem("metadata.name", f'has a dot, which no Service may have: use "{name.replace(".", "-")}"')


def _first(problems: Iterable[Problem]) -> list[Problem]:
    listed = list(islice(problems, NAMED + 1))
    if len(listed) > NAMED:
        listed[NAMED] = Problem("spec", f"there are more problems: only the first {NAMED} are listed")
    return listed


def warnings(spec: Spec) -> list[str]:
    """Return a warning for each setting that has no effect (contract §2), memory without a unit, and a wrong id.

    The spec is valid.
    """
    complete = default(spec)
    messages = []
    if complete["model"]["source"] == "custom" and complete["model"].get("servedName"):
        messages.append("servedName is ignored for custom source")
    if complete["serving"]["mode"] == "aggregated" and set(COMPONENTS) & complete["scaling"].keys():
        messages.append("scaling.prefill and scaling.decode are ignored in aggregated mode")
    return [*messages, *_without_unit(complete), *_unknown_to_the_hub(complete), *_of_one_node(complete)]


def _of_one_node(spec: Spec) -> Iterator[str]:
    """Yield a warning for each claim that the pods of several replicas mount, although only one node can."""
    scaling = spec["scaling"]
    counts = [scaling["replicas"]]
    if spec["serving"]["mode"] == "disaggregated":
        counts = [scaling[name]["replicas"] for name in COMPONENTS]
    if sum(counts) < 2:
        return
    for volume, template in templates(spec):
        if template["accessMode"] == "ReadWriteOnce":
            yield (
                f"volume {volume} of model.storage: claimTemplate.accessMode is ReadWriteOnce, so all {sum(counts)} "
                "replicas have to run on one node: ReadWriteMany allows several, if the StorageClass has it"
            )


def _without_unit(spec: Spec) -> Iterator[str]:
    """Yield a warning for memory in which no server starts: usually a number whose unit is missing."""
    scaling = spec["scaling"]
    places = {
        "resources": spec.get("resources"),
        **{f"scaling.{name}": scaling.get(name) for name in COMPONENTS},
    }
    for path, resources in places.items():
        memory = (resources or {}).get("memory")
        if memory is not None and 0 < quantity.parse(memory) < SMALLEST:
            yield f"{path}.memory is {memory}, less than 1Mi, in which no engine starts: add a unit, such as 8Gi"


def _unknown_to_the_hub(spec: Spec) -> Iterator[str]:
    """Yield a warning for a model id that no hub has, such as one of Ollama.

    A lower-case name alone may be right: the hub has gpt2, and a provider may have names of its own.
    """
    model_id = spec["model"].get("id") or ""
    if spec["model"]["source"] != "huggingface" or "uri" in spec["model"].get("storage", {}):
        return
    if address := _HUB.match(model_id):
        rest = "/".join(model_id[address.end() :].split("/")[:2]) or "ORGANIZATION/MODEL"
        yield f"model.id has the address of the Hugging Face hub, which engines add themselves: write {shown(rest)}"
    elif "/" in model_id or model_id.startswith("."):
        return
    elif set(":@") & set(model_id):
        yield f"model.id is {shown(model_id)}, and no model on the Hugging Face hub has such a name: {_FORM}"
    elif spec["engine"].get("type") == "llamacpp":
        yield (
            f"model.id is {shown(model_id)}, and llama.cpp finds a model on the Hugging Face hub only with its "
            f"organization: {_FORM}-GGUF"
        )
    elif model_id != model_id.lower():
        yield (
            f"model.id is {shown(model_id)}, without an organization: unless your provider knows this name, {_FORM}"
        )


def _broken(rule: Rule, spec: Spec) -> Iterator[Problem]:
    for path, value in _places(rule.at.split(".")[1:], spec, "spec"):
        if not rule.holds(value):
            yield Problem(f"{path}.{rule.field}" if rule.field else path, rule.message)


def _places(steps: list[str], value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield every value at a path such as `env[].valueFrom`, with its location."""
    if not steps:
        yield path, value
        return
    field, rest = steps[0].removesuffix("[]"), steps[1:]
    if field not in value:
        return
    if steps[0] == field:
        yield from _places(rest, value[field], f"{path}.{field}")
        return
    for index, item in enumerate(value[field]):
        yield from _places(rest, item, f"{path}.{field}[{index}]")


def _derived_name(spec: Spec) -> Iterator[Problem]:
    """Yield a problem if the model's name, which is the last part of its id, looks like a flag.

    Python's argparse, in most engines, ends with an error there. Not a rule of the CRD: before Kubernetes 1.30, the
    API server would refuse each status of an older object that breaks it.
    """
    model = spec["model"]
    if model["source"] != "huggingface" or model.get("servedName"):
        return
    if (model.get("id") or "").rsplit("/", 1)[-1].startswith("-"):
        yield Problem(
            "spec.model.servedName",
            "the last part of model.id begins with a dash, so engines take it for a flag: set model.servedName",
        )


def _cpu_limit(spec: Spec) -> Iterator[Problem]:
    """Yield a problem if the CPU limit is 0, or below the request. CEL of Kubernetes 1.26 has no quantities.

    A kubelet takes 0 for no limit, and a ResourceQuota counts it as 0.
    """
    cpu, limit = (spec["resources"].get(name) for name in ("cpu", "cpuLimit"))
    if limit is None:
        return
    if quantity.parse(limit) == 0:
        yield Problem("spec.resources.cpuLimit", "must be more than 0: leave it out for no limit")
    elif cpu is not None and quantity.parse(cpu) > quantity.parse(limit):
        yield Problem(
            "spec.resources.cpuLimit", f"{limit} is less than resources.cpu, which is {cpu}: raise the limit"
        )


def _claim_sizes(spec: Spec) -> Iterator[Problem]:
    """Yield a problem for each claim without a size, which the API server would refuse."""
    for volume, template in templates(spec):
        if quantity.parse(template["size"]) == 0:
            yield Problem(f"spec.model.storage.volumes[{volume}].claimTemplate.size", "must be more than 0")


def _keys(spec: Spec) -> Iterator[Problem]:
    """Yield invalid keys of labels: they have a format, too, but a structural schema describes only values."""
    metadata = spec.get("podTemplate", {}).get("metadata", {})
    for path, keys in (
        ("spec.podTemplate.metadata.labels", metadata.get("labels", {})),
        ("spec.podTemplate.metadata.annotations", metadata.get("annotations", {})),
        ("spec.nodeSelector", spec.get("nodeSelector", {})),
    ):
        for key in keys:
            if not _KEY.fullmatch(key):
                yield Problem(f"{path}[{key}]", f"the key must be {MEANINGS[QUALIFIED_NAME]}")
