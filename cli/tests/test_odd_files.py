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
from kubefoundry_cli.install import bundle
from kubefoundry_cli.model import from_text
from kubefoundry_cli.providers import crds_in

HEAD = "apiVersion: kubefoundry.ai/v1alpha1\nkind: ModelDeployment\n"
SPEC = "spec: {model: {id: org/model}, engine: {type: vllm}}\n"
BOMB = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 8)}]\n" for level in range(1, 10)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SPEC, "has 0 ModelDeployments beside None;"),
        ("kind: List\nitems: []\n", "has 0 ModelDeployments beside List;"),
        ("kind: modeldeployment\n", "has 0 ModelDeployments beside modeldeployment;"),
        ("kind: ModelDeployment\nmetadata: {name: a}\n" + SPEC, "has no apiVersion; a ModelDeployment has"),
        (
            "apiVersion: kubefoundry.ai/v1\nkind: ModelDeployment\nmetadata: {name: a}\n" + SPEC,
            "has apiVersion kubefoundry.ai/v1; a ModelDeployment has kubefoundry.ai/v1beta1",
        ),
        (HEAD + "metadata: {name: 5}\n" + SPEC, "metadata.name is not text: quote it"),
        (HEAD + "metadata: {}\n" + SPEC, "metadata.name is missing"),
        (HEAD + "metadata: {name: a, namespace: 7}\n" + SPEC, "metadata.namespace is not text: quote it"),
        (HEAD + "metadata: {name: a, name: b}\n" + SPEC, "the key 'name' occurs twice"),
        (HEAD + "metadata: {name: a}\n" + SPEC + SPEC, "the key 'spec' occurs twice"),
        (HEAD + "metadata: {name: a}\nspec: &a {model: *a}\n", "it has aliases that expand to more than"),
        (HEAD + "metadata: {name: a}\n" + BOMB, "it has aliases that expand to more than"),
    ],
)
def test_file_without_a_model_is_refused_by_its_content(text: str, said: str) -> None:
    with pytest.raises(Failure) as failure:
        from_text(text, "m.yaml")

    assert said in failure.value.message


def test_date_is_text() -> None:
    obj = from_text(HEAD + "metadata: {name: a}\nspec: {model: {id: 2024-01-01}}\n", "m.yaml")

    assert obj["spec"]["model"]["id"] == "2024-01-01"


def test_yaml_alias_and_merge_are_read_as_by_kubectl() -> None:
    text = (
        HEAD
        + "metadata: &m {name: a}\nspec:\n  <<: {engine: {type: vllm}}\n  <<: {image: i}\n  model: {id: a/b}\n"
    )

    obj = from_text(text, "m.yaml")

    assert obj["spec"]["engine"] == {"type": "vllm"}
    assert obj["spec"]["image"] == "i"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: CustomResourceDefinition\n", "has no metadata.name"),
        ("kind: CustomResourceDefinition\nmetadata: [a]\n", "has no metadata.name"),
        ("kind: CustomResourceDefinition\nmetadata: {name: a.b}\n", "has no spec.versions with names"),
        (
            "kind: CustomResourceDefinition\nmetadata: {name: a.b}\nspec: {versions: []}\n",
            "has no spec.versions with names",
        ),
        (
            "kind: CustomResourceDefinition\nmetadata: {name: a.b}\nspec: {versions: [7]}\n",
            "has no spec.versions with names",
        ),
    ],
)
def test_invalid_crd_file_is_rejected_by_name(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "crd.yaml").write_text(text)

    with pytest.raises(Failure) as failure:
        crds_in([str(tmp_path / "crd.yaml")])

    assert said in failure.value.message


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"kind": "ClusterRole", "rules": ["abc"]}, "rules is not a list of objects"),
        ({"kind": "ClusterRole", "rules": [{"verbs": "get"}]}, "verbs of a rule is not a list of texts"),
        ({"kind": "Role", "rules": [{"resources": [7]}]}, "resources of a rule is not a list of texts"),
        ({"kind": "RoleBinding", "roleRef": "admin"}, "roleRef names no role"),
    ],
)
def test_role_whose_rights_cannot_be_shown_is_not_installed(body: dict[str, object], said: str) -> None:
    text = yaml.safe_dump({"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "r"}, **body})

    with pytest.raises(Failure) as failure:
        bundle.parsed(text, "m.yaml")

    assert said in failure.value.message


VALUES = st.recursive(
    st.sampled_from([None, True, 7, 1e300, "", "x", "\n", "2024-01-01", "\u202e"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "name"]), inner, max_size=2)
    ),
    max_leaves=4,
)


@pytest.mark.slow
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    metadata=st.dictionaries(st.sampled_from(["namespace", "labels", "annotations", "uid"]), VALUES),
    spec=VALUES,
)
def test_file_of_any_content_causes_at_most_one_error_line(
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
