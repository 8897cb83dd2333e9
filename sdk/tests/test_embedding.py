"""A provider inside another program: where its settings and its account come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubefoundry_sdk import Settings
from kubefoundry_sdk.kopf import login


def test_settings_from_the_variables_of_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEFOUNDRY_HEALTH_PORT", "1234")
    monkeypatch.setenv("KUBEFOUNDRY_FINALIZER_TIMEOUT", "1m30s")
    monkeypatch.setenv("KUBEFOUNDRY_LEADER_ELECT", "true")

    stated = Settings.from_environment()

    assert (stated.health_port, stated.metrics_port) == (1234, 8080)
    assert (stated.finalizer_timeout, stated.leader_elect) == (90.0, True)
    assert Settings().health_port == 0


def test_invalid_environment_setting_is_rejected(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBEFOUNDRY_HEARTBEAT_TIMEOUT", "soon")

    with pytest.raises(SystemExit):
        Settings.from_environment()

    assert "'soon' is not a duration: write 90s, 20m or 1h30m" in capsys.readouterr().err


def test_kopf_logs_in_as_the_service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("secret\n")
    monkeypatch.setenv("KUBEFOUNDRY_SERVICE_ACCOUNT_DIR", str(tmp_path))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")

    connection = login()

    assert connection
    assert (connection.server, connection.token) == ("https://[fd00::1]:6443", "secret")
    assert connection.ca_path == tmp_path / "ca.crt"
