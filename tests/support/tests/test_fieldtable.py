"""The field table is read as written, its gaps are found, and broken promises are named."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kubefoundry_conformance.fields import FIELDS
from kubefoundry_sdk._provider.contract import Rendered
from support.fieldtable import Row, Sample, broken_promise, gaps, read
from support.paths import values_at

TABLE = """
| Other | table |
|---|---|
| a | b |

| Field | Variant | Class | Detail |
|---|---|---|---|
| `image` | all | honoured | `spec.image`, `spec.*.image` as it is |
| `engine.trustRemoteCode: false` | preset, template | refused | "no {what} here" (always \\| trusted) |

| After | it |
"""


def test_fields_are_the_leaves_of_the_typed_spec() -> None:
    assert len(FIELDS) == len(set(FIELDS)) == 50
    assert {"model.id", "scaling.decode.gpu.type", "podTemplate.metadata.labels", "engine.args"} <= set(
        FIELDS
    )


def test_table_is_read(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(TABLE)

    first, second = read(readme)

    assert (first.field, first.variants, first.klass) == ("image", ("all",), "honoured")
    assert (second.leaf, second.variants, second.klass) == (
        "engine.trustRemoteCode",
        ("preset", "template"),
        "refused",
    )
    assert second.detail.endswith("(always | trusted)")


@pytest.mark.parametrize("text", ["nothing", TABLE.replace("honoured", "mostly")])
def test_no_table_and_a_wrong_class_are_errors(tmp_path: Path, text: str) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(text)

    with pytest.raises(ValueError, match=r"README\.md"):
        read(readme)


def test_gaps_are_named() -> None:
    rows = [Row(field, ("all",), "meaningless", "why", 1) for field in FIELDS[1:]]
    rows += [Row(FIELDS[0], ("a",), "meaningless", "why", 2), Row("imgae", ("c",), "meaningless", "why", 3)]

    assert gaps(rows, ("a", "b")) == [
        f"{FIELDS[0]} has no class for b",
        "line 3: imgae is no field of the spec",
        "line 3: c is not one of a, b",
    ]


SAMPLE = Sample({"image": "a"}, {"image": "b"})


def _render(spec: Mapping[str, Any]) -> Rendered:
    main = {
        "kind": "Main",
        "spec": {
            "fixed": 1,
            "parts": [{"name": "x", "image": spec["image"]}, {"name": "y"}],
            "text": f"a:\n- b: {spec['image']}",
        },
    }
    return Rendered(main, ({"kind": "ConfigMap", "data": {"c.yaml": f"d: {spec['image']}"}},))


@pytest.mark.parametrize(
    ("klass", "detail", "problems", "expected"),
    [
        ("honoured", "`spec.parts[x].image`, `spec.text.a[0].b`", [], None),
        ("honoured", '`ConfigMap data["c.yaml"].d`', [], None),
        ("honoured", "`spec.parts[x].image`, `spec.fixed`", [], "does not change spec.fixed"),
        ("honoured", "`spec.nowhere`", [], "does not change spec.nowhere"),
        ("honoured", "somewhere", [], "begins with a path"),
        ("honoured", "`spec.parts[x].image`", ["no"], "but refused"),
        ("refused", '"no {what} here"', ["no images here"], None),
        ("refused", '"no {what} here"', ["not here"], "is not refused"),
        ("refused", "no text", ["no"], "double quotes"),
        ("meaningless", "why", [], "changes the render"),
    ],
)
def test_broken_promise_of_a_row_is_found(
    klass: Any, detail: str, problems: list[str], expected: str | None
) -> None:
    found = broken_promise(Row("image", ("all",), klass, detail, 7), SAMPLE, lambda spec: problems, _render)

    assert found is None if expected is None else found is not None and expected in found


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("spec.parts[0].name", ["x"]),
        ("spec.parts[*].name", ["x", "y"]),
        ("spec.parts.*.image", ["b"]),
        ("spec.parts[9].name", []),
        ("ConfigMap data", [{"c.yaml": "d: b"}]),
        ("Secret data", []),
    ],
)
def test_paths(path: str, expected: list[Any]) -> None:
    assert values_at(_render({"image": "b"}), path) == expected
