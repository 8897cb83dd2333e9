"""Decides which of a server's settings may appear in the status.

The server lists its configuration with every `${env.X}` replaced, and hides values only by the names of their
keys (llama_stack/core/utils/config.py and core/stack.py, 0.7.3). A variable may come from a Secret, which the
status must not repeat.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kubefoundry_llamastack import confidential
from kubefoundry_llamastack.render.request import Distribution
from kubefoundry_sdk._api.kinds import Object
from llamastack_providers import apis

HIDDEN: Final = "********"
"""The text by which llama-stack hides a value."""

_VARIABLE: Final = "${env."


def disclosed(cr: Distribution, providers: Iterable[Object]) -> list[Object]:
    """Return the providers as the status lists them.

    A provider of the CR keeps the CR's text where that names a variable. The origin of other providers' values
    is unknown, so they are hidden if the CR has a variable whose value is not in the CR. What a provider reports
    about its health may be the text of an error, which may also repeat a mounted file, a token, or a service's words.
    """
    written = _written(cr)
    has_secrets = any("valueFrom" in item for item in cr.spec.server.container_spec.env or ())
    hides_health = has_secrets or confidential.has_secrets(cr)
    rows = []
    for item in providers:
        own = written.get((item["api"], item["provider_id"]))
        health = item.get("health") or {}
        if hides_health and health.get("message"):
            item = {**item, "health": {**health, "message": HIDDEN}}
        rows.append({**item, "config": _config(item.get("config") or {}, own, has_secrets=has_secrets)})
    return rows


def _config(running: Any, own: Object | None, *, has_secrets: bool) -> Any:
    if own is not None:
        return _as_written(running, own)
    return _hidden(running) if has_secrets else running


def _written(cr: Distribution) -> dict[tuple[str, str], Object]:
    """Return the configurations in the CR, by llama-stack's API and provider id."""
    models = {("inference", item.id): item.config or {} for item in cr.spec.server.model_deployments}
    externals = {
        (apis.run_name(section) or section, item.provider_id): item.config or {}
        for section, item in cr.spec.providers()
    }
    return {**models, **externals}


def _as_written(running: Any, written: Any) -> Any:
    if isinstance(running, dict) and isinstance(written, dict):
        return {key: _as_written(value, written.get(key)) for key, value in running.items()}
    if isinstance(running, list) and isinstance(written, list):
        if len(running) != len(written):
            # an item that a variable disables
            return written
        return [_as_written(*pair) for pair in zip(running, written, strict=True)]
    return written if isinstance(written, str) and _VARIABLE in written else running


def _hidden(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _hidden(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_hidden(inner) for inner in value]
    # The server turns the text of a variable into a number if it looks like one.
    return value if value is None or isinstance(value, bool) else HIDDEN
