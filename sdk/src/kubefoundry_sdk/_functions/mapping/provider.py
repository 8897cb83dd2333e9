"""A `Provider` whose functions are a mapping."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, get_args

from kubefoundry_sdk._api import contract_version
from kubefoundry_sdk._api.kinds import HELPER_KINDS, Object
from kubefoundry_sdk._cel import rule
from kubefoundry_sdk._cel.lint import Scope
from kubefoundry_sdk._cel.schema import Record, record_of
from kubefoundry_sdk._functions.description import provider_of
from kubefoundry_sdk._functions.mapping import status, variables
from kubefoundry_sdk._functions.mapping.document import MappingFile, read
from kubefoundry_sdk._functions.mapping.expression import (
    BRACES,
    Expression,
    Invalid,
    expression,
    suggestion,
)
from kubefoundry_sdk._functions.mapping.template import Compiler, Rendering, Template, is_map
from kubefoundry_sdk._provider.contract import Deployment, HelperKind, Observation, Provider, Rendered
from kubefoundry_sdk._provider.refused_fields import refused_fields
from kubefoundry_sdk._provider.upstream_kind import Schema

_BY_RUNTIME: Final = frozenset({"apiVersion", "kind", "status"})
_METADATA: Final = frozenset({"labels", "annotations"})


def load(path: Path, images: Mapping[str, str]) -> Provider:
    """Return the provider of a mapping's file, with the default images by engine.

    Raise ValueError, with the file, the path in it and the reason, if the file is unreadable or invalid.
    """
    try:
        return provider(path.read_text(encoding="utf-8"), images)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"mapping {path}: {reason}") from error


def provider(text: str, images: Mapping[str, str]) -> Provider:
    """Return the provider of a mapping.

    Raises:
        Invalid: The text is not a mapping.
    """
    file = read(text)
    functions = _compiled(file, images)
    kinds = tuple(dict.fromkeys(helper["kind"] for helper in file.helpers))
    built = provider_of(file, functions.supports, functions.render, functions.observe)
    # A mapping refuses every field that it does not read, so it knows those of all versions.
    return replace(built, helper_kinds=kinds, contract=contract_version.CURRENT)


@dataclass(frozen=True, slots=True)
class _Functions:
    file: MappingFile
    images: Mapping[str, str]
    scope: Scope
    compiler: Compiler
    problems: list[tuple[Expression, Template]]
    refused: dict[str, str]
    main: Template
    helpers: list[Template]
    status: status.StatusReader

    def supports(self, deployment: Deployment, schema: Schema | None) -> list[str]:
        rendering = self._rendering(deployment, schema)
        said = [
            str(sentence(rendering) or condition.path)
            for condition, sentence in self.problems
            if condition.holds(rendering.variables)
        ]
        contradictions = self.compiler.contradictions(rendering)
        return [*said, *refused_fields(deployment.spec, self.refused), *contradictions]

    def render(self, deployment: Deployment, schema: Schema) -> Rendered:
        rendering = self._rendering(deployment, schema)
        content = self.main(rendering) or {}
        head = {"apiVersion": schema.api_version, "kind": self.file.upstream.kind}
        metadata = {"name": deployment.name, **content.pop("metadata", {})}
        helpers = [_helper(template(rendering)) for template in self.helpers]
        image = rendering.variables.json["derived"].get("image") if "image" in self.compiler.fields else None
        return Rendered({**head, "metadata": metadata, **content}, tuple(helpers), image=image)

    def observe(self, deployment: Deployment, live: Object) -> Observation:
        values = variables.variables(deployment, self.images, (), self.scope)
        return self.status.observe(deployment, live, values)

    def _rendering(self, deployment: Deployment, schema: Schema | None) -> Rendering:
        known = {name for fields in (self.file.fields or {}).values() for name in fields.optional}
        features = known if schema is None else schema.features
        return Rendering(deployment, variables.variables(deployment, self.images, features, self.scope))


def _helper(content: Any) -> Object:
    return {"apiVersion": HELPER_KINDS[content["kind"]].api_version, **content}


def _compiled(file: MappingFile, images: Mapping[str, str]) -> _Functions:
    overrides = record_of(file.overrides) if file.overrides else Record({})
    scope = variables.scope(overrides)
    compiler = Compiler(file.title, scope)
    _check(file.object, "object", _BY_RUNTIME, _METADATA)
    main = compiler.compile(file.object, "object")
    helpers = []
    for index, helper in enumerate(file.helpers):
        _check_helper(helper, f"helpers[{index}]")
        helpers.append(compiler.compile(helper, f"helpers[{index}]"))
    _check_selection_rules(file)
    _check_overrides(overrides, compiler.overrides)
    sentences = Compiler(file.title, scope, unset="unset")
    problems = [
        (
            expression(problem.when, f"problems[{index}].when", scope, condition=True),
            sentences.compile(problem.say, f"problems[{index}].say"),
        )
        for index, problem in enumerate(file.problems)
    ]
    return _Functions(
        file,
        images,
        scope,
        compiler,
        problems,
        _refused(file, compiler.fields),
        main,
        helpers,
        status.reader(file.status, file.title, file.upstream.kind, variables.status_scope(overrides)),
    )


def _check_selection_rules(file: MappingFile) -> None:
    for index, selection in enumerate(file.selection_rules):
        if isinstance(compiled := rule.compile(selection.condition), rule.InvalidRule):
            hint = BRACES if "${" in selection.condition else ""
            raise Invalid(f"selectionRules[{index}].condition: {compiled.problem}{hint}")


def _check_overrides(declared: Record, reads: Set[tuple[str, ...]]) -> None:
    """Raise Invalid for an override that no template reads, by itself or with its object."""
    for leaf in variables.leaves(declared):
        if not any(leaf[: len(read)] == read for read in reads):
            path = ".properties.".join(leaf)
            raise Invalid(f"overrides.properties.{path}: no template reads overrides.{'.'.join(leaf)}")


def _refused(file: MappingFile, fields: set[str]) -> dict[str, str]:
    """Return the sentence for each field of the spec that no template reads."""
    for field, capability in variables.SELECTED.items():
        if field not in fields and len(getattr(file.capabilities, capability)) > 1:
            raise Invalid(f"capabilities: has several {capability}, and no template reads spec.{field}")
    known = variables.fields_to_honour(file.capabilities)
    for field in file.refused:
        if field not in known:
            hint = suggestion(field, known)
            raise Invalid(f"refused.{field}: a ModelDeployment has no such field{hint}")
        if field in fields:
            raise Invalid(f"refused.{field}: a template reads spec.{field}")
    standard = f"{file.title} has no place for {{field}}: remove it"
    return {field: file.refused.get(field, standard) for field in known if field not in fields}


def _check(content: Any, path: str, reserved: Set[str], metadata: Set[str]) -> None:
    """Raise Invalid if a template could set more of an object than its content, labels and annotations."""
    if not is_map(content):
        raise Invalid(f"{path}: should be a map with the object's fields")
    if not is_map(content.get("metadata", {})):
        raise Invalid(f"{path}.metadata: should be a map with {', '.join(sorted(metadata))}")
    stated = sorted(reserved & content.keys())
    stated += [f"metadata.{key}" for key in sorted(content.get("metadata", {}).keys() - metadata)]
    if stated:
        raise Invalid(f"{path}.{stated[0]}: remove it, because only the runtime sets it")


def _check_helper(content: Mapping[str, Any], path: str) -> None:
    if content.get("kind") not in get_args(HelperKind):
        raise Invalid(f"{path}.kind: should be one of {', '.join(get_args(HelperKind))}")
    _check(content, path, _BY_RUNTIME - {"kind"}, _METADATA | {"name"})
    if not isinstance(content.get("metadata", {}).get("name"), str):
        raise Invalid(f"{path}.metadata.name: is required, and has to begin with ${{metadata.name}}")
