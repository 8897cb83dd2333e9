"""Credentials: what cannot be used is reported in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubefoundry_sdk.cluster.credentials import NoCredentials, from_kubeconfig, token_file

WITH_AUTHORITY = """
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1", certificate-authority: %s}}]
users: [{name: u, user: {}}]
"""


@pytest.mark.parametrize(
    "text", ["a: [b", "hello", "", "{}"], ids=["no YAML", "no map", "empty", "no context"]
)
def test_a_broken_kubeconfig_is_reported_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)

    with pytest.raises(
        NoCredentials, match=r"no usable kubeconfig: .+; set --kubeconfig or KUBECONFIG"
    ) as received:
        from_kubeconfig(str(tmp_path / "config"))

    assert "\n" not in str(received.value)


def test_a_folder_or_a_broken_authority_is_reported(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("no certificate")
    (tmp_path / "config").write_text(WITH_AUTHORITY % (tmp_path / "ca.crt"))

    for path in (tmp_path, tmp_path / "config"):
        with pytest.raises(NoCredentials, match="no usable kubeconfig"):
            from_kubeconfig(str(path))


def test_a_replaced_token_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    token = token_file(file)
    assert token() == "first"

    (tmp_path / "next").write_text("second")
    (tmp_path / "next").rename(file)

    assert token() == "second"
