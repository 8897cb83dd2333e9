"""Generate values from a structural schema, with any set of fields, and optionally with invalid values."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

Schema = dict[str, Any]

_ODD: Final = st.sampled_from(
    [
        None,
        True,
        "",
        "x",
        "-x",
        "No",
        "1K",
        0,
        -1,
        1.5,
        2.0,
        2**40,
        [],
        ["x"],
        {},
        {"x": "y"},
        "é" * 70,
        "a b",
        "x/",
    ]
)


def values(schema: Schema, *, odd: bool = False) -> SearchStrategy[Any]:
    """Return a strategy of valid values. `odd` adds values at any depth that the schema may refuse."""
    fitting = _fitting(schema, odd=odd)
    return st.integers(0, 15).flatmap(lambda roll: _ODD if roll == 0 else fitting) if odd else fitting


def _fitting(schema: Schema, *, odd: bool) -> SearchStrategy[Any]:
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema.get("x-kubernetes-int-or-string"):
        return st.sampled_from([0, 1, "16Gi", "500m", "1.5", "1e3", ".5"])
    match schema["type"]:
        case "object":
            return _objects(schema, odd=odd)
        case "array":
            items = values(schema["items"], odd=odd)
            least = schema.get("minItems", 0)
            keys = () if odd else schema.get("x-kubernetes-list-map-keys", ())
            if keys:
                return st.lists(
                    items, min_size=least, max_size=3, unique_by=lambda item: tuple(item[key] for key in keys)
                )
            return st.lists(items, min_size=least, max_size=3)
        case "integer":
            minimum, maximum = schema.get("minimum", 0), schema.get("maximum", 2**31 - 1)
            return st.sampled_from([minimum, minimum + 1, 8, maximum])
        case "boolean":
            return st.booleans()
    return _texts(schema)


def _texts(schema: Schema) -> SearchStrategy[str]:
    if "pattern" in schema:
        texts = st.from_regex(schema["pattern"].removeprefix("^").removesuffix("$"), fullmatch=True)
        longest = schema.get("maxLength", 64)
        return texts.filter(lambda text: schema.get("minLength", 0) <= len(text) <= longest)
    return st.text("ab1 ", min_size=schema.get("minLength", 0), max_size=8)


def _objects(schema: Schema, *, odd: bool) -> SearchStrategy[Any]:
    if "additionalProperties" in schema:
        keys = st.sampled_from(["a", "b.c/d", "max-model-len", "alias", "--x"])
        return st.dictionaries(keys, values(schema["additionalProperties"], odd=odd), max_size=3)
    fields = {name: values(field, odd=odd) for name, field in schema.get("properties", {}).items()}
    required = schema.get("required", [])
    return st.fixed_dictionaries(
        {name: fields[name] for name in required},
        optional={name: field for name, field in fields.items() if name not in required},
    )
