"""Read YAML files of users as kubectl reads them, and report errors in one line."""

from __future__ import annotations

from typing import Any, Final

import yaml

from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_sdk.api.foreign_yaml import CONVERSIONS

MOST: Final = 200_000
"""Maximum number of values with all aliases expanded. A few lines of nested aliases can expand to billions."""


class PlainYAML(yaml.SafeLoader):
    """A YAML loader without dates, which JSON does not have: `2024-01-01` is text, as it is for kubectl.

    A repeated key is an error: one of its values would be lost silently.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012 (as the base class declares it)
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """Return the mapping. Raises ConstructorError for a repeated key."""
        keys = set()
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in keys:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key.value!r} occurs twice", key.start_mark
                    )
                keys.add(key.value)
        return super().construct_mapping(node, deep=deep)


def value(text: str) -> Any:
    """Return the value of one document. Raises ValueError with the reason if it is not YAML."""
    return _checked(text, lambda: yaml.load(text, PlainYAML))  # a safe loader


def documents(text: str, name: str) -> list[Any]:
    """Return the documents of a text without empty ones. `name` is the text's name in errors. Raises Failure."""
    try:
        parsed = _checked(text, lambda: list(yaml.load_all(text, PlainYAML)))
    except ValueError as error:
        raise Failure(f"cannot read {name}: it is not YAML: {error}", Exit.USAGE) from error
    return [document for document in parsed if document]


def _checked(text: str, load: Any) -> Any:
    try:
        content = load()
        if "*" in text and _expanded(content, {}) > MOST:
            raise ValueError(f"its aliases expand to more than {MOST} values")
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except (yaml.YAMLError, *CONVERSIONS) as error:
        raise ValueError(" ".join(str(error).split())) from error
    return content


def _expanded(content: Any, counts: dict[int, int]) -> int:
    """Return the number of values; a part that is repeated by aliases counts each time."""
    if not isinstance(content, dict | list):
        return 1
    if id(content) not in counts:
        # For a value that contains itself: its expansion has no end.
        counts[id(content)] = MOST + 1
        parts = content.values() if isinstance(content, dict) else content
        counts[id(content)] = 1 + sum(_expanded(part, counts) for part in parts)
    return counts[id(content)]
