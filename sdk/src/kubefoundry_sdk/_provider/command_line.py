"""An engine's command line: options derived from fields of the spec, plus `engine.args`.

Every entry is literal: no shell reads it, and text that the kubelet would expand is escaped (`literal`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kubefoundry_sdk._api.extra_args import reserved
from kubefoundry_sdk._api.flag_names import dashed, is_dotted


@dataclass(frozen=True, slots=True)
class Derived:
    """An option derived from a field.

    Attributes:
        flag: The flag's name, without dashes in front.
        value: The value.
        source: The field, as messages name it.
        switch: Whether `true` becomes the bare flag, and `false` is omitted because it is the engine's default.
    """

    flag: str
    value: str
    source: str
    switch: bool = False


def all_addresses(args: Mapping[str, str], source: str) -> Derived:
    """Return the `--host` with which a server listens on all addresses.

    The address is 0.0.0.0, unless `args` sets `host` to `::`. A cluster without IPv4 needs `::`.
    """
    return Derived("host", "::" if args.get("host") == "::" else "0.0.0.0", source)


def argv(derived: Iterable[Derived], args: Mapping[str, str], extra: Iterable[str] = ()) -> list[str]:
    """Return the `args` of a container, each as a separate entry.

    An option that `args` repeats appears once (contract §2).

    Args:
        derived: The options that the provider derives from fields.
        args: `spec.engine.args`; for an engine without `--no-` flags, as `for_command_line` returns them.
        extra: `spec.engine.extraArgs`, which end the command line.
    """
    derived = list(derived)
    derived_flags = {option.flag for option in derived}
    entries = [
        *(entry for option in derived for entry in _option_entries(option)),
        *(
            entry
            for flag in sorted(args)
            if dashed(flag) not in derived_flags
            for entry in _argument_entries(flag, args[flag])
        ),
        *extra,
    ]
    return [literal(entry) for entry in entries]


def literal(entry: str) -> str:
    """Return an entry for a container's `command` or `args` that arrives unchanged.

    The kubelet expands `$(NAME)` and turns `$$` into `$` (Kubernetes, third_party/forked/golang/expansion), so a
    dollar before a dollar or an opening parenthesis is doubled. Use it only for `command` and `args`.
    """
    return re.sub(r"\$(?=[$(])", "$$", entry)


def contradictions(derived: Iterable[Derived], args: Mapping[str, str]) -> list[str]:
    """Return a sentence for each entry of `args` that gives a derived option another value (contract §2)."""
    options = {option.flag: option for option in derived}
    return [
        f'engine.args "{flag}" is "{value}", but {option.source} makes it "{option.value}": remove it'
        for flag, value in sorted(args.items())
        if (option := options.get(dashed(flag))) and _normalized(value) != _normalized(option.value)
    ]


def repetitions(derived: Iterable[Derived], extra_flags: Mapping[str, str]) -> list[str]:
    """Return a sentence for each flag in `engine.extraArgs` that a derived option sets.

    Args:
        derived: The options that the provider derives.
        extra_flags: `spec.engine.extra_flags`.
    """
    sources = {option.flag: option.source for option in derived}
    return [
        f"engine.extraArgs has the flag {written}, which {sources[flag]} sets: remove it"
        for written, flag in reserved(sources, extra_flags).items()
    ]


def is_switch(flag: str, value: str) -> bool:
    """Check whether an engine argument means the bare flag or its `--no-` form (contract §2)."""
    return value in ("", "true", "false") and not is_dotted(flag)


def _option_entries(option: Derived) -> list[str]:
    if option.switch:
        return [f"--{option.flag}"] if option.value == "true" else []
    return [f"--{option.flag}", option.value]


def _argument_entries(flag: str, value: str) -> list[str]:
    if not is_switch(flag, value):
        return [f"--{flag}", value]
    return [f"--no-{flag}" if value == "false" else f"--{flag}"]


def _normalized(value: str) -> str:
    return value or "true"
