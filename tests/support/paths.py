"""Read values of rendered objects by the paths of the field tables.

`spec.services.VllmWorker.resources.limits.gpu`, `template.spec.containers[0].args`,
`spec.components[worker].replicas` (the element with this name), `spec.services.*.envs` (all elements),
`metadata.annotations["kaito.sh/runtime"]`. Text with a YAML or JSON mapping is decoded:
`spec.serveConfigV2.applications[0].args`. The kind of a helper object comes first:
`ConfigMap data["inference_config.yaml"].vllm.max-model-len`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from kubefoundry_sdk._provider.contract import Rendered

_STEP: Final = re.compile(r'\["(?P<quoted>[^"]+)"\]|\[(?P<element>[^\]]+)\]|\.?(?P<name>[^.\[\]]+)')


def values_at(rendered: Rendered, path: str) -> list[Any]:
    """Return the values at a path, in order.

    Raises:
        ValueError: The path is unreadable.
    """
    kind, _, rest = path.rpartition(" ")
    roots = [helper for helper in rendered.helpers if helper["kind"] == kind] if kind else [rendered.main]
    values: list[Any] = list(roots)
    for step in _steps(rest):
        values = [child for value in values for child in _children(_opened(value), step)]
    return values


def _steps(path: str) -> list[tuple[str, bool]]:
    """Return the steps of a path, each with a flag for an element in brackets."""
    steps, position = [], 0
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            raise ValueError(f"{path!r} cannot be read at character {position + 1}")
        element = match["element"]
        steps.append((element or match["quoted"] or match["name"], element is not None))
        position = match.end()
    return steps


def _children(value: Any, step: tuple[str, bool]) -> Iterator[Any]:
    name, is_element = step
    if name == "*":
        yield from value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    elif isinstance(value, list) and is_element:
        if name.isdecimal():
            yield from value[int(name) : int(name) + 1]
        else:
            yield from (item for item in value if isinstance(item, dict) and item.get("name") == name)
    elif isinstance(value, dict) and name in value:
        yield value[name]


def _opened(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        content = yaml.safe_load(value)
    except yaml.YAMLError:
        return value
    return content if isinstance(content, dict) else value
