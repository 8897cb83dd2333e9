"""Files that are not quite a ModelDeployment: one line that says what is wrong, whatever is in them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubefoundry_cli.failure import Failure
from kubefoundry_cli.model import from_text

HEAD = "apiVersion: kubefoundry.ai/v1alpha1\nkind: ModelDeployment\n"
SPEC = "spec: {model: {id: org/model}, engine: {type: vllm}}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SPEC, "has 0 ModelDeployments beside None;"),
        ("kind: List\nitems: []\n", "has 0 ModelDeployments beside List;"),
        ("kind: modeldeployment\n", "has 0 ModelDeployments beside modeldeployment;"),
        ("kind: ModelDeployment\nmetadata: {name: a}\n" + SPEC, "has no apiVersion; a ModelDeployment has"),
        (
            "apiVersion: kubefoundry.ai/v1\nkind: ModelDeployment\nmetadata: {name: a}\n" + SPEC,
            "has apiVersion kubefoundry.ai/v1; a ModelDeployment has kubefoundry.ai/v1alpha1",
        ),
        (HEAD + "metadata: {name: 5}\n" + SPEC, "metadata.name is not text: quote it"),
        (HEAD + "metadata: {}\n" + SPEC, "metadata.name is missing"),
    ],
)
def test_it_is_said_what_the_file_has_instead(text: str, said: str) -> None:
    with pytest.raises(Failure) as failure:
        from_text(text, "m.yaml")

    assert said in failure.value.message


def test_a_date_is_text() -> None:
    obj = from_text(HEAD + "metadata: {name: a}\nspec: {model: {id: 2024-01-01}}\n", "m.yaml")

    assert obj["spec"]["model"]["id"] == "2024-01-01"


VALUES = st.recursive(
    st.sampled_from([None, True, 7, 1e300, "", "x", "\n", "2024-01-01", "\u202e"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "name"]), inner, max_size=2)
    ),
    max_leaves=4,
)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    metadata=st.dictionaries(st.sampled_from(["namespace", "labels", "annotations", "uid"]), VALUES),
    spec=VALUES,
)
def test_whatever_it_holds_is_at_most_one_line_of_an_error(
    tmp_path: Path, metadata: dict[str, object], spec: object
) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(HEAD + yaml.safe_dump({"metadata": {"name": "a", **metadata}, "spec": spec}))

    done = subprocess.run(
        [Path(sys.executable).with_name("kubefoundry"), "explain", "--offline", "-f", file],
        capture_output=True,
        text=True,
    )

    assert "Traceback" not in done.stderr
    assert done.returncode == 0 or done.stdout or done.stderr.count("\n") == 1, done
