"""Renders the command of the server's container (sources §5.1, §5.2).

No script contains a user's text: a user's own command is passed as positional parameters.
"""

from __future__ import annotations

from typing import Final

from kubefoundry_llamastack.render import provider_deployment, sidecars, tool
from kubefoundry_llamastack.render.request import Distribution
from kubefoundry_sdk._api.kinds import Object
from llamastack_providers.service import START_SECONDS

WITH_USER_CONFIG: Final = """\
import os, re, sys
package = "llama_stack"
from importlib.metadata import PackageNotFoundError, version
try:
    release = tuple(int(part) for part in re.findall("[0-9]+", version("llama_stack"))[:3])
except PackageNotFoundError:
    release = (999,)
    try:
        version("ogx")
        package = "ogx"
    except PackageNotFoundError:
        pass
config, port, workers = (os.environ[name] for name in ("LLAMA_STACK_CONFIG", "LLS_PORT", "LLS_WORKERS"))
if release < (0, 2, 17):
    words = ["llama_stack.distribution.server.server", "--config", config]
elif release < (0, 3):
    words = ["llama_stack.core.server.server", config]
else:
    os.environ["OGX_CONFIG"] = config
    words = ["uvicorn", f"{package}.core.server.server:create_app", "--factory", "--host", "0.0.0.0"]
    words += ["--port", port, "--workers", workers]
os.execv(sys.executable, [sys.executable, "-m", *words])
"""
"""Starts the server with the user's configuration, in the way of its version."""

PYTHON: Final = 'exec "`command -v python3 || command -v python`" -c "$0"'
"""Runs the program in the next argument."""

WITH_PROVIDERS: Final = f"""\
set -e
python=python3
command -v "$python" >/dev/null || python=python
"$python" {tool.ZIPAPP} preflight --input "$1"
shift
PYTHONPATH="{tool.PACKAGES}${{PYTHONPATH:+:$PYTHONPATH}}"
export PYTHONPATH
LLAMA_STACK_CONFIG={tool.EFFECTIVE}
RUN_CONFIG_PATH="$LLAMA_STACK_CONFIG"
OGX_CONFIG="$LLAMA_STACK_CONFIG"
export LLAMA_STACK_CONFIG RUN_CONFIG_PATH OGX_CONFIG
package=llama_stack
command -v llama >/dev/null || ! command -v ogx >/dev/null || package=ogx
"""
"""Runs before the server if providers are installed. Preflight itself does not have them on its path. PYTHONPATH
keeps what image and user put there, and has no trailing colon, because that would mean the working directory."""

UVICORN_COMMAND: Final = (
    'exec "$python" -m uvicorn "$package.core.server.server:create_app" --factory --host 0.0.0.0 '
    '--port "$LLS_PORT" --workers "$LLS_WORKERS" "$@"\n'
)
OWN_COMMAND: Final = (
    # its own command refuses to serve without TLS
    f'[ "$package" = llama_stack ] || {UVICORN_COMMAND}'
    'exec llama stack run "$LLAMA_STACK_CONFIG" --port "$LLS_PORT" "$@"\n'
)
CR_COMMAND: Final = 'exec "$@"\n'
"""The command after preflight: the server itself (with several workers under uvicorn), or the command in the CR.

Arguments without a command are the server's."""


def start(cr: Distribution, image: str) -> Object:
    """Render `command` and `args` of the server's container.

    Both are absent if the image's entrypoint runs unchanged.
    """
    container = cr.spec.server.container_spec
    if cr.extended:
        [preflight_input] = tool.preflight(cr, image)
        arguments = [preflight_input, *(container.command or ()), *(container.args or ())]
        return {"command": ["/bin/sh", "-c", WITH_PROVIDERS + _last_command(cr), "sh"], "args": arguments}
    fields: Object = {}
    if container.command:
        fields["command"] = list(container.command)
    elif cr.spec.server.user_config and not container.args:
        fields["command"] = ["/bin/sh", "-c", PYTHON, WITH_USER_CONFIG]
    if container.args:
        fields["args"] = list(container.args)
    return fields


def _last_command(cr: Distribution) -> str:
    if cr.spec.server.container_spec.command:
        return CR_COMMAND
    return UVICORN_COMMAND if (cr.spec.server.workers or 1) > 1 else OWN_COMMAND


PREFLIGHT_SECONDS: Final = 60
"""Seconds that preflight gets in addition to what each provider may take: the design's 30 s for 10, doubled."""

SERVER_SECONDS: Final = 300
"""Seconds that the server gets in addition to preflight."""

PERIOD: Final = 10


def probes(cr: Distribution) -> Object:
    """Render the probes.

    The startup probe is the existing operator's only one. With providers it waits for services, preflight and five
    minutes more. A server that does not answer for half a minute gets no requests. After five minutes it is
    restarted, and not earlier, because a provider may keep it busy for a while.
    """
    failures = 3
    if cr.extended:
        loading = tool.provider_seconds(cr) * len(cr.spec.providers())
        starting = sum(item.spec.health.start_seconds for item in sidecars.of(cr) if item.spec.required)
        # Pods of their own run already. Preflight waits as long as the tool does by default.
        starting += START_SECONDS * sum(item.spec.required for item in provider_deployment.of(cr))
        seconds = starting + PREFLIGHT_SECONDS + loading + SERVER_SECONDS
        failures = seconds // PERIOD
    health = {"path": "/v1/health", "port": cr.port}
    return {
        "startupProbe": {
            "httpGet": health,
            "initialDelaySeconds": 15,
            "timeoutSeconds": 30,
            "periodSeconds": PERIOD,
            "failureThreshold": failures,
        },
        "readinessProbe": {
            "httpGet": health,
            "timeoutSeconds": PERIOD,
            "periodSeconds": PERIOD,
            "failureThreshold": 3,
        },
        "livenessProbe": {
            "httpGet": health,
            "timeoutSeconds": 30,
            "periodSeconds": 30,
            "failureThreshold": 10,
        },
    }
