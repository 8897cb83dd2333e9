"""YAML in, with line and column where it is broken; YAML out, so that every reader gets the same values."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import yaml

from llamastack_providers.errors import Code, Failure

_QUOTED: Final = re.compile(r"[-+]?(\.?[0-9]|\.(inf|nan))|.*[\x85\u2028\u2029]", re.IGNORECASE | re.DOTALL)
"""Looks like a number to a reader of YAML 1.2 ("1e3"), or holds a line break that PyYAML would fold."""


def load(path: Path, name: str) -> Any:
    """The value of a file that messages call `name`. Raises InvalidYaml, OSError."""
    raw = path.read_bytes()
    try:
        return yaml.safe_load(raw)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise Failure(Code.InvalidYaml, f"{name}{where}: {error.problem or error.context}") from None
    except yaml.reader.ReaderError as error:
        before = raw[: error.position]
        line, column = before.count(b"\n") + 1, len(before) - (before.rfind(b"\n") + 1) + 1
        raise Failure(Code.InvalidYaml, f"{name} at line {line}, column {column}: {error.reason}") from None
    except (ValueError, RecursionError) as error:
        # a date or number that no Python value can hold, or nesting without end
        raise Failure(Code.InvalidYaml, f"{name}: {error}") from None


def dump(value: Any) -> str:
    """Block style, keys in their order, one line a value, however long."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=2**31)
    return text


class _Dumper(yaml.SafeDumper):
    """Quotes some texts that PyYAML leaves plain, so that every reader gets them as they were written."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = '"' if _QUOTED.match(value) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)
