"""Templates of a mapping: a tree of literals and expressions becomes a tree of values.

Null is left out, and so is a map or list that is empty, unless the mapping itself has it empty. A map whose key
begins with `$` is a directive.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kubefoundry_sdk._cel.lint import Scope
from kubefoundry_sdk._functions.mapping.expression import (
    Expression,
    Invalid,
    Variables,
    expression,
    split,
    suggestion,
)
from kubefoundry_sdk._functions.mapping.variables import fields_in
from kubefoundry_sdk._provider.contract import Deployment
from kubefoundry_sdk._provider.results import Fault
from kubefoundry_sdk.engine import Derived, argv, contradictions, for_command_line, repetitions

MAX_CHARACTERS: Final = 2**20
"""The most characters of one render: the API server stores objects of at most 1.5 MiB."""


@dataclass(slots=True)
class Rendering:
    """One call on a deployment."""

    deployment: Deployment
    variables: Variables
    characters: int = 0

    def admit(self, value: Any, path: str) -> Any:
        """Count a value, and return it. Raise Fault if the values of this call are too large together."""
        self.characters += len(value) if isinstance(value, str) else len(json.dumps(value))
        if self.characters > MAX_CHARACTERS:
            raise Fault(f"{path}: more than {MAX_CHARACTERS} characters are rendered")
        return value


Template = Callable[[Rendering], Any]
"""Returns the value of a part of a template; None to leave the part out."""


@dataclass
class Compiler:
    """Compiles templates, and collects the fields of the spec that they read.

    Attributes:
        title: The provider's name in messages.
        scope: The types of the variables.
        unset: What a text has for an expression without a value; None to leave the text out.
        fields: The fields of the spec whose whole values the templates read.
        overrides: The steps below `spec.provider.overrides` that they read.
        options: For each `$argv`, its options.
    """

    title: str
    scope: Scope
    unset: str | None = None
    fields: set[str] = field(default_factory=set)
    overrides: set[tuple[str, ...]] = field(default_factory=set)
    options: list[Template] = field(default_factory=list)

    def compile(self, value: Any, path: str) -> Template:
        """Compile a part of a template.

        Raises:
            Invalid: An expression or a directive in it is invalid.
        """
        match value:
            case str():
                return self._text(value, path)
            case list():
                return self._list(
                    [self.compile(item, f"{path}[{index}]") for index, item in enumerate(value)]
                )
            case dict() if any(key.startswith("$") and not key.startswith("${") for key in value):
                return self._directive(value, path)
            case dict():
                return self._map(value, path)
        return lambda rendering: value

    def _text(self, text: str, path: str) -> Template:
        parts = [
            self._expression(part, path) if is_expression else part
            for part, is_expression in split(text, path)
        ]
        match parts:
            case [Expression() as only] if self.unset is None:
                return lambda rendering: _filled(rendering.admit(only.value(rendering.variables), path))
            case [] | [str()]:
                return lambda rendering: "".join(parts)  # type: ignore[arg-type]

        def joined(rendering: Rendering) -> str | None:
            values = [part if isinstance(part, str) else part.value(rendering.variables) for part in parts]
            if wrong := [value for value in values if isinstance(value, dict | list)]:
                raise Fault(f"{path}: {str(wrong[0])[:40]} cannot be a part of a text")
            values = [self.unset if value is None else value for value in values]
            if None in values:
                return None
            return str(rendering.admit("".join(map(_word, values)), path))

        return joined

    def _expression(self, text: str, path: str) -> Expression:
        compiled = expression(text, path, self.scope)
        for read in compiled.reads:
            self.fields.update(fields_in(read, path))
            if read[0] == "overrides":
                self.overrides.add(read[1:])
        return compiled

    def _list(self, items: list[Template]) -> Template:
        if not items:
            return lambda rendering: []
        return lambda rendering: _filled([value for item in items if (value := item(rendering)) is not None])

    def _map(self, value: dict[str, Any], path: str) -> Template:
        if keys := [key for key in value if "${" in key]:
            remedy = "write the map as one, ${{KEY: VALUE}}"
            raise Invalid(f"{path}.{keys[0]}: a key has no expressions: {remedy}")
        parts = {key: self.compile(part, f"{path}.{key}") for key, part in value.items()}
        if not parts:
            return lambda rendering: {}
        return lambda rendering: _filled(
            {key: value for key, part in parts.items() if (value := part(rendering)) is not None}
        )

    def _directive(self, value: dict[str, Any], path: str) -> Template:
        directives = {"$merge": self._merge, "$argv": self._argv}
        [name, *more] = value
        if more or name not in directives:
            key = next(key for key in value if key.startswith("$"))
            hint = "" if key in directives else suggestion(key, directives)
            raise Invalid(f"{path}.{key}: has to be {' or '.join(directives)}, alone in its map{hint}")
        return directives[name](value[name], f"{path}.{name}")

    def _merge(self, value: Any, path: str) -> Template:
        if not isinstance(value, list):
            raise Invalid(f"{path}: should be a list of maps, of which later ones take precedence")
        maps = [self.compile(item, f"{path}[{index}]") for index, item in enumerate(value)]

        def merged(rendering: Rendering) -> Any:
            values = [part for each in maps if (part := each(rendering)) is not None]
            if wrong := [part for part in values if not isinstance(part, dict)]:
                raise Fault(f"{path}: {str(wrong[0])[:40]} is not a map")
            return _filled({key: item for part in values for key, item in part.items()})

        return merged

    def _argv(self, value: Any, path: str) -> Template:
        if not isinstance(value, dict):
            raise Invalid(f"{path}: should be a map of the options that the engine needs, by name")
        options = self._map(value, path)
        self.options.append(options)
        self.fields |= {"engine.args", "engine.extraArgs"}

        def arguments(rendering: Rendering) -> Any:
            engine = rendering.deployment.spec.engine
            args = for_command_line(engine.type, engine.args)
            words = argv(self._derived(options, rendering), args, engine.extra_args)
            return _filled(rendering.admit(words, path))

        return arguments

    def _derived(self, options: Template, rendering: Rendering) -> list[Derived]:
        return [
            Derived(flag, _word(value), self.title, switch=isinstance(value, bool))
            for flag, value in (options(rendering) or {}).items()
        ]

    def contradictions(self, rendering: Rendering) -> Iterator[str]:
        """Yield a sentence for each flag of the user's that contradicts or repeats an option of `$argv`."""
        engine = rendering.deployment.spec.engine
        for options in self.options:
            derived = self._derived(options, rendering)
            yield from contradictions(derived, engine.args)
            yield from repetitions(derived, engine.extra_flags)


def _filled(value: Any) -> Any:
    """Return the value, None for an empty map or list."""
    return None if value in ({}, []) else value


def _word(value: Any) -> str:
    """Return a value as a command line has it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def is_map(value: Any) -> bool:
    """Check whether a part of a template is a map whose keys are literal."""
    return isinstance(value, Mapping) and not any(key.startswith("$") for key in value)
