"""Report several refusals: one line with the first of them, then the others in short."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import starmap

from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_cli.output import clean


@dataclass(frozen=True, slots=True)
class Refused:
    """An object that cannot be handled.

    Attributes:
        kind: The kind of the object.
        name: Its name, with the namespace if it has one.
        failure: The reason, with the remedy.
    """

    kind: str
    name: str
    failure: Failure


def together(refused: Sequence[Refused], what: str) -> Failure:
    """Combine failures: one line with the first of them, then a line for each other reason.

    Objects for which a permission is missing share a line: the remedy is the same.

    Args:
        refused: The objects, at least one.
        what: The consequence for all of them.

    Returns:
        The failure, with the exit code of all if they have the same one.
    """
    first, *others = refused
    if not others:
        return first.failure
    codes = {Exit(entry.failure.exit_code) for entry in refused}
    by_kind: dict[str, list[str]] = {}
    messages: dict[str, None] = {}
    is_grouped = first.failure.exit_code == Exit.FORBIDDEN
    for entry in others:
        if is_grouped and entry.failure.exit_code == Exit.FORBIDDEN:
            by_kind.setdefault(entry.kind, []).append(clean(entry.name))
        elif entry.failure.message != first.failure.message:
            messages[entry.failure.message] = None
    lines = [f"{what}: {first.failure.message}", *messages]
    if by_kind:
        lines.append(f"a permission is also missing for {', '.join(starmap(_objects, by_kind.items()))}")
    return Failure("\n  ".join(lines), codes.pop() if len(codes) == 1 else Exit.NO)


def _objects(kind: str, names: Sequence[str]) -> str:
    return f"{kind} {names[0]}" if len(names) == 1 else f"{kind} ({len(names)})"
