"""Print data on standard output: tables for people, and JSON, YAML or names for programs."""

from __future__ import annotations

import functools
import json
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    import yaml

    from kubefoundry_sdk._api.kinds import Kind, Object

Command = TypeVar("Command", bound=Callable[..., Any])

GAP: Final = "   "
"""The space between two columns of a table."""

USUAL: Final = 80
"""Columns of a terminal of usual width."""


def option(*forms: str) -> Callable[[Command], Command]:
    """Return the option -o; the first form is the default."""
    return click.option(
        "-o",
        "--output",
        "form",
        type=click.Choice(forms),
        default=forms[0],
        show_default=True,
        help="Form of the output.",
    )


LISTS: Final = ("table", "wide", "json", "yaml", "name")
"""The forms of every command that lists objects."""


def objects(
    items: Sequence[Object],
    form: str,
    kind: Kind,
    rows: Callable[[bool], tuple[Sequence[str], Sequence[Sequence[str]]]],
) -> None:
    """Print a list of objects in one of LISTS.

    Args:
        items: The objects.
        form: The form.
        kind: The kind of objects without `kind`, which the API server leaves out in lists of built-in kinds.
        rows: Returns head and cells of the table. The argument is whether to include the columns of `wide`.
    """
    typed = [{**type_of(kind), **obj} for obj in items]
    if form in ("json", "yaml"):
        # as kubectl prints it
        data({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": typed}, form)
    elif form == "name":
        for obj in typed:
            print(qualified_name(obj))
    else:
        table(*rows(form == "wide"))


def type_of(kind: Kind) -> Object:
    """Return `apiVersion` and `kind` of an object of the kind."""
    return {"apiVersion": kind.api_version, "kind": kind.kind}


def qualified_name(obj: Object) -> str:
    """Return `modeldeployment.kubefoundry.ai/m`, as kubectl prints it for `-o name`."""
    group, slash, _ = str(obj["apiVersion"]).rpartition("/")
    return clean(f"{str(obj['kind']).lower()}{'.' if slash else ''}{group}/{obj['metadata']['name']}")


def say(text: str) -> None:
    """Print prose to standard error, out of the way of data."""
    print(printable(text), file=sys.stderr)


def data(value: Any, form: str) -> None:
    """Print the value as JSON or YAML."""
    if form == "json":
        print(json.dumps(value, indent=2, ensure_ascii=False))
    else:
        documents([value])


def one_or_all(values: Sequence[Any], form: str, *, several: bool) -> None:
    """Print a list if the command is about several objects, otherwise the value, if there is one."""
    if several:
        data(list(values), form)
    for value in () if several else values:
        data(value, form)


def documents(values: Iterable[Any]) -> None:
    """Print YAML documents."""
    print(as_yaml(values), end="")


def as_yaml(values: Iterable[Any]) -> str:
    """Return YAML documents that people can read."""
    import yaml

    return str(yaml.dump_all(list(values), Dumper=_readable(), sort_keys=False, allow_unicode=True))


@functools.cache
def _readable() -> type[yaml.SafeDumper]:
    """Return a dumper that writes text of several lines as a block, and repeated values in full, not as aliases."""
    # Commands that print a table do not need it: 0.03 s of imports.
    import yaml

    class Readable(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    Readable.add_representer(
        str,
        lambda dumper, text: dumper.represent_scalar(
            "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
        ),
    )
    return Readable


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns as kubectl aligns them; each cell is one line, whatever its text.

    On a terminal that is too narrow, print a block of lines for each row instead.
    """
    shown = [[clean(cell) for cell in row] for row in (head, *rows)]
    widths = [max(width_of(row[column]) for row in shown) for column in range(len(head))]
    if rows and _is_too_wide(sum(widths) + len(GAP) * (len(widths) - 1)):
        _print_blocks(*shown)
        return
    for row in shown:
        row_of(row, widths)


def _is_too_wide(width: int) -> bool:
    """Check whether a terminal would break most lines of the table. A file or a pipe is never too narrow.

    A terminal of usual width breaks the ends of lines, as those of kubectl.
    """
    if sys.stdout is None or not sys.stdout.isatty():
        return False
    columns = shutil.get_terminal_size().columns
    return width > columns and (columns < USUAL or width > 1.5 * columns)


def _print_blocks(head: Sequence[str], *rows: Sequence[str]) -> None:
    """Print a line for each cell, and an empty line between two rows."""
    width = max(map(len, head)) + 1
    for number, row in enumerate(rows):
        if number:
            print()
        for title, cell in zip(head, row, strict=True):
            print(f"{title + ':':{width}} {cell}".rstrip(), flush=True)


def row_of(cells: Sequence[str], widths: Sequence[int]) -> None:
    """Print one line of a table, and flush it."""
    padded = (cell + " " * (width - width_of(cell)) for cell, width in zip(cells, widths, strict=True))
    print(GAP.join(padded).rstrip(), flush=True)


def width_of(text: str) -> int:
    """Return the columns that a terminal needs for printable text.

    Chinese, Japanese and Korean characters take two, combining marks none (Unicode Standard Annex 11).
    """
    if text.isascii():
        return len(text)
    marks = sum(unicodedata.category(char) in ("Mn", "Me") for char in text)
    return len(text) - marks + sum(unicodedata.east_asian_width(char) in "WF" for char in text)


def clean(text: object) -> str:
    """Return one line without control characters: tenant input must not move another user's cursor."""
    line = str(text)
    return line if line.isprintable() else "".join(char if char.isprintable() else " " for char in line)


def printable(text: str) -> str:
    """Remove control characters from each line, because messages quote names that tenants have chosen."""
    return "\n".join(map(clean, text.split("\n")))


def write_foreign(content: bytes) -> None:
    """Write bytes of a container or a model: without control characters to a terminal, else unchanged."""
    if sys.stdout is None:
        return
    if sys.stdout.isatty():
        # A tab moves no further than spaces do, and code has tabs.
        print("\t".join(map(printable, content.decode(errors="replace").split("\t"))), end="", flush=True)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.flush()


def since(stamp: str | None) -> float | None:
    """Return the seconds since an RFC 3339 time, None if the value is not a timestamp."""
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(str(stamp))).total_seconds()
    except (ValueError, TypeError):
        return None


def age(stamp: str | None) -> str:
    """Return the time since an RFC 3339 time as `duration` writes it."""
    seconds = since(stamp)
    return "<unknown>" if seconds is None else duration(seconds)


def duration(seconds: float) -> str:
    """Return `5d`, `3h`, `12m` or `40s`, as kubectl writes ages."""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f}{unit}"
    return f"{max(0, seconds):.0f}s"
