"""Writes docs/sdk-reference.md: the public names of the SDK, with their signatures and what their docstrings say."""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

HERE: Final = Path(__file__).parent
WRITTEN: Final = HERE / "sdk-reference.md"
MODULES: Final = {
    "kubefoundry_sdk": "Providers",
    "kubefoundry_sdk.kopf": "Inside a kopf operator (extra `kopf`)",
    "kubefoundry_sdk.testing": "Tests (extra `testing`)",
    "kubefoundry_selector": "Selectors (package `kubefoundry-selector`)",
}
NAMES: Final = {
    "kubefoundry_sdk.kopf": ["serve"],
    "kubefoundry_sdk.testing": ["deployment", "specs", "violations"],
}
"""Of modules without `__all__`."""


def reference() -> str:
    """The page."""
    lines = [
        "# The SDK's public names",
        "",
        "Written by `python docs/sdk.py` (`make docs`) from the docstrings. All else in these packages is private",
        "and may change in any release. How they are used: [writing-a-provider.md](writing-a-provider.md),",
        "[writing-a-selector.md](writing-a-selector.md), [kopf.md](kopf.md).",
        "",
    ]
    for module, title in MODULES.items():
        lines += [f"## {title}", "", f"`from {module} import …`", ""]
        public = import_module(module)
        for name in NAMES.get(module) or public.__all__:
            lines += entry(name, getattr(public, name))
    return "\n".join(lines).rstrip() + "\n"


def entry(name: str, value: Any) -> Iterator[str]:
    """One name: how it is called, what it says of itself, its fields."""
    yield f"### {name}"
    yield ""
    if inspect.isclass(value) and issubclass(value, BaseModel):
        yield from _text(value)
        yield from _rows(_of_model(value, ""))
        members = [(key, item) for key, item in vars(value).items() if isinstance(item, property)]
        for key, item in [*members, *_methods(value)]:
            yield from _text(item, f"`.{key}{'' if isinstance(item, property) else _signature(item)}`: ")
    elif is_dataclass(value):
        yield from _text(value)
        yield from _rows((field.name, str(field.type), _stated(field)) for field in fields(value))
    elif inspect.isfunction(value) or inspect.isclass(value):
        called = "" if inspect.isclass(value) else _signature(value)
        yield f"`{name}{called}`"
        yield ""
        yield from _text(value)
    else:
        yield f"`{' '.join(str(value).replace('typing.', '').split())}`"
        yield ""


def _methods(value: Any) -> list[tuple[str, Any]]:
    return [
        (key, item)
        for key, item in vars(value).items()
        if inspect.isfunction(item) and not key.startswith("_")
    ]


def _signature(value: Any) -> str:
    return str(inspect.signature(value)).replace("'", "")


def _text(value: Any, begin: str = "") -> Iterator[str]:
    text = inspect.getdoc(value) or ""
    first, _, rest = text.partition("\n\n")
    yield begin + " ".join(first.split())
    yield ""
    if rest.strip():
        yield "```text"
        yield from textwrap.dedent(rest).strip().splitlines()
        yield "```"
        yield ""


def _rows(found: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    yield "| field | type | default |"
    yield "|---|---|---|"
    for name, form, default in found:
        yield f"| `{name}` | `{form}` | {default} |".replace(" | None", " \\| None").replace(
            "] | [", "] \\| ["
        )
    yield ""


def _of_model(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, str, str]]:
    """Its fields, and those of the models in them, by path in Python."""
    for key, field in model.model_fields.items():
        yield f"{prefix}{key}", _type(field.annotation), _default(field)
        for inner in (field.annotation, *getattr(field.annotation, "__args__", ())):
            if inspect.isclass(inner) and issubclass(inner, BaseModel):
                yield from _of_model(inner, f"{prefix}{key}.")


def _type(annotation: Any) -> str:
    """Short: without modules and constraints."""
    if inspect.isclass(annotation) and not getattr(annotation, "__args__", None):
        return annotation.__name__
    arguments = getattr(annotation, "__args__", ())
    name = getattr(annotation, "__name__", None) or str(annotation)
    if type(None) in arguments:
        inner = [_type(item) for item in arguments if item is not type(None)]
        return " or ".join([*dict.fromkeys(inner), "None"])
    if "Literal" in str(annotation):
        return " or ".join(f'"{item}"' for item in arguments)
    if "Annotated" in str(type(annotation)) or name == "Annotated":
        return _type(annotation.__origin__)
    if name in ("Union", "UnionType") and arguments:
        return " or ".join(dict.fromkeys(_type(item) for item in arguments))
    return f"{name}[{', '.join(_type(item) for item in arguments)}]" if arguments else name


def _default(field: Any) -> str:
    if field.is_required():
        return "required"
    made = field.get_default(call_default_factory=True, validated_data={})
    return type(made).__name__ + "()" if isinstance(made, BaseModel) else f"`{made!r}`"


def _stated(field: Any) -> str:
    if field.default is not MISSING:
        made = field.default
        return f"`{made.__name__}`" if callable(made) else f"`{made!r}`"
    return "empty" if field.default_factory is not MISSING else "required"


def main() -> int:
    WRITTEN.write_text(reference(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
