"""Reads YAML, reporting line and column of an error, and writes YAML that every reader parses to the same values.

It is separate from `kubefoundry_sdk._api.foreign_yaml`, because a zipapp runs it in images without the SDK, and dates
are dates, as for llama-stack.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any, Final

import yaml

from llamastack_providers.errors import Code, Failure

_MOST: Final = 8 * 2**20
"""Letters of a file whose aliases are written out. A ConfigMap has at most 2**20."""
_QUOTED: Final = re.compile(r"[-+]?(\.?[0-9]|\.(inf|nan))|.*[\x85\u2028\u2029]", re.IGNORECASE | re.DOTALL)
"""Looks like a number to a reader of YAML 1.2 ("1e3"), or holds a line break that PyYAML would fold."""


def load(path: Path, name: str) -> Any:
    """Return the value of a file that messages call `name`.

    Raises:
        Failure: InvalidYaml.
        OSError: The file is not readable.
    """
    raw = path.read_bytes()
    try:
        return yaml.load(raw, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise Failure(Code.InvalidYaml, f"{name}{where}: {error.problem or error.context}") from None
    except yaml.reader.ReaderError as error:
        before = raw[: error.position]
        line, column = before.count(b"\n") + 1, len(before) - (before.rfind(b"\n") + 1) + 1
        raise Failure(Code.InvalidYaml, f"{name} at line {line}, column {column}: {error.reason}") from None
    except RecursionError:
        raise Failure(Code.InvalidYaml, f"{name}: its lists or mappings are nested too deeply") from None


def dump(value: Any) -> str:
    """Format the value in block style, keys in their order, one line for each value, however long."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=2**31)
    return text


class _Loader(yaml.SafeLoader):
    """Reports the place of a value that is invalid for its type, or that aliases make endless or too large.

    Examples are a date that does not exist and a number of 5,000 digits.
    """

    def get_single_node(self) -> yaml.Node | None:
        node: yaml.Node | None = super().get_single_node()
        if node is not None:
            _expanded(node, {})
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            value = super().construct_object(node, deep)
            if isinstance(value, int):
                # what cannot be written again: Python reads more digits in hexadecimal
                str(value)
            return value
        except (ArithmeticError, AttributeError, LookupError, ValueError):
            # PyYAML's own conversions raise all of these.
            kind = node.tag.removeprefix("tag:yaml.org,2002:")
            shown = ascii(node.value) if isinstance(node, yaml.ScalarNode) else "it"
            problem = f"{shown[:40]} is not a valid {kind}"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None


def _expanded(node: yaml.Node, sizes: dict[int, int]) -> int:
    """Count letters and values below the node with every alias written out.

    Raises:
        ConstructorError: There are more than _MOST, or the value contains itself.
    """
    if isinstance(node, yaml.ScalarNode):
        return 1 + len(node.value)
    if (size := sizes.get(id(node), -1)) == -1:
        sizes[id(node)] = 0
        below = (
            node.value if isinstance(node, yaml.SequenceNode) else itertools.chain.from_iterable(node.value)
        )
        size = sizes[id(node)] = 1 + sum(_expanded(child, sizes) for child in below)
    elif size == 0:
        raise yaml.constructor.ConstructorError(None, None, "the value contains itself", node.start_mark)
    if size > _MOST:
        problem = f"with its aliases the value has more than {_MOST} letters"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
    return size


class _Dumper(yaml.SafeDumper):
    """Quotes some texts that PyYAML leaves plain, so that every reader parses them as they were written."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = '"' if _QUOTED.match(value) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)
