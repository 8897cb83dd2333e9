"""Writes errors.md, the troubleshooting of external providers, from the table in the tool.

The examples are messages as the tool writes them: the texts are the table's, the reasons are below.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from llamastack_providers.errors import Code, Failure
from llamastack_providers.layout import EXTERNAL_PROVIDERS
from llamastack_providers.summary import Origin, failure_text

HEADER: Final = """\
# When an external provider fails

`make docs` generates this page from the tool's own table. A container's message has a line `Code:`. You find it in
`status.externalProviderStatus` and in the conditions of the LlamaStackDistribution, and with all details in the log:

    kubectl logs POD -c CONTAINER

Containers, in the order in which they run: `external-provider-ID` (one for each provider), then
`extract-distribution-config` (without a user ConfigMap), then `merge-config`, then the server's own, which begins
with the preflight. The exit code is 1 if the provider or the configuration is wrong, and 2 if operator and tool do
not match. [operator.md](operator.md) explains what the operator itself reports about a pod: images that cannot be
pulled, missing capacity, too little memory, quotas.
"""

INSTALL: Final = Origin("my-echo", "acme/echo:0.1.0", "external-provider-my-echo")
EXTRACT: Final = Origin("", "acme/stack:1.4", "extract-distribution-config")
MERGE: Final = Origin("", "acme/stack:1.4", "merge-config")
SERVER: Final = Origin("", "acme/stack:1.4", "llama-stack", init=False)
"""The containers that speak."""

LOADED: Final = {"provider_id": "my-echo", "image": "acme/echo:0.1.0", "module": "acme_echo"}
ECHO: Final = "acme_echo-0.1.0-py3-none-any.whl"

EXAMPLES: Final[dict[Code, tuple[Origin, str, dict[str, Any]]]] = {
    Code.BadCall: (INSTALL, "order must be a number from 0, not -1", {}),
    Code.MissingSpec: (INSTALL, "Missing /lls-provider/lls-provider-spec.yaml in image acme/echo:0.1.0", {}),
    Code.InvalidYaml: (
        INSTALL,
        "/lls-provider/lls-provider-spec.yaml at line 3, column 9: expected ',' or ']', but got ':'",
        {},
    ),
    Code.InvalidSpec: (
        INSTALL,
        "/lls-provider/lls-provider-spec.yaml: metadata.version: '1.0' is not a semantic version such as 1.2.0",
        {},
    ),
    Code.ApiMismatch: (
        INSTALL,
        "Provider 'my-echo' (image: acme/echo:0.1.0)\ndeclares api=inference in lls-provider-spec.yaml\n"
        "but is placed under externalProviders.safety",
        {"api": "inference"},
    ),
    Code.ServiceMissing: (
        INSTALL,
        "the provider has a service, but lls-provider-spec.yaml has no spec.service",
        {},
    ),
    Code.ServiceNeeded: (
        INSTALL,
        "lls-provider-spec.yaml says spec.service.required, but the provider has no service",
        {},
    ),
    Code.TransportUnsupported: (
        INSTALL,
        "service.transport is UnixSocket, but the image supports only TCP",
        {},
    ),
    Code.ConfigKeyTaken: (
        INSTALL,
        "config.url is set, but it is where the address of the service is written",
        {},
    ),
    Code.PathOutside: (INSTALL, "spec.wheelPath: ../echo.whl points to /echo.whl, outside /lls-provider", {}),
    Code.MissingWheel: (INSTALL, f"spec.wheelPath: packages/{ECHO} does not exist in the image", {}),
    Code.NoPackages: (INSTALL, "the image has no *.whl file in /lls-provider/packages/", {}),
    Code.BadWheel: (INSTALL, f"{ECHO} is not a readable wheel: File is not a zip file", {}),
    Code.DuplicateWheel: (
        INSTALL,
        f"{ECHO} and acme_echo-0.2.0-py3-none-any.whl contain the same package, acme-echo",
        {},
    ),
    Code.WrongPlatform: (
        INSTALL,
        "fast-1.0-cp311-cp311-manylinux_2_17_x86_64.whl does not fit this container's Python, "
        "cp312 on manylinux_2_36_x86_64",
        {},
    ),
    Code.WrongArchitecture: (
        INSTALL,
        "fast/core.so in fast-1.0-py3-none-any.whl is built for aarch64 (64 bit, little endian); this container "
        "runs x86_64 (64 bit, little endian)",
        {},
    ),
    Code.PythonTooOld: (INSTALL, f"{ECHO} requires Python >=3.13; the image has 3.12.8", {}),
    Code.DependencyConflict: (
        INSTALL,
        "httpx 0.28.1 (acme-echo 0.1.0 requires httpx>=0.28) excludes httpx 0.27.0 of provider 'my-guard' "
        "(image: acme/guard:2.1.0)",
        {},
    ),
    Code.FileClash: (
        INSTALL,
        "acme/settings.py already exists with other content, from provider 'my-guard' (image: acme/guard:2.1.0)",
        {},
    ),
    Code.PipMissing: (INSTALL, "/usr/bin/python3 has no module pip", {}),
    Code.PipFailed: (
        INSTALL,
        "renamed has an invalid wheel, .dist-info directory 'other-0.1.0.dist-info' does not start with 'renamed'",
        {},
    ),
    Code.NoBaseConfig: (
        EXTRACT,
        "Checked paths:\n  - /opt/app-root/run.yaml (not found)\n  - /opt/app-root/config.yaml (not found)\n"
        "  - /etc/llama-stack/run.yaml (not found)\n  - /etc/llama-stack/config.yaml (not found)\n"
        "  - /app/run.yaml (not found)\n  - /app/config.yaml (not found)\n"
        "  - $RUN_CONFIG_PATH (not set)\n  - $DISTRO_NAME (not set)",
        {},
    ),
    Code.BaseConfigMissing: (MERGE, "/opt/llama-stack/base-config/run.yaml does not exist", {}),
    Code.InvalidBaseConfig: (
        MERGE,
        "key 'config.yaml' of ConfigMap 'mine': providers.inference: is not a list of providers",
        {},
    ),
    Code.MissingMetadata: (
        MERGE,
        f"{EXTERNAL_PROVIDERS}/metadata/my-echo/ is missing",
        {"provider_id": "my-echo", "image": "acme/echo:0.1.0"},
    ),
    Code.DuplicateProvider: (
        MERGE,
        "providerId 'my-echo' is used by the images acme/echo:0.1.0 and acme/other:1.0.0",
        {"provider_id": "my-echo", "image": "acme/other:1.0.0"},
    ),
    Code.ProviderTypeTaken: (
        SERVER,
        "provider 'my-echo' (image: acme/echo:0.1.0) has the type remote::echo, but so has provider 'other' (image: "
        "acme/other:1.0.0): remote::echo",
        LOADED,
    ),
    Code.ModuleShadowed: (
        SERVER,
        "yaml/__init__.py is a module 'yaml', which the server has from pyyaml",
        LOADED,
    ),
    Code.ServerMissing: (
        SERVER,
        "llama_stack_api: ModuleNotFoundError: No module named 'llama_stack_api'",
        {},
    ),
    Code.ServerTooOld: (SERVER, "the distribution image has llama_stack 0.2.12", {}),
    Code.ServerBroken: (
        SERVER,
        "llama_stack_api: ImportError: cannot import name 'validate_core_schema' from 'pydantic_core'",
        LOADED,
    ),
    Code.ApiUnknown: (
        SERVER,
        "API 'agents' is not one of batches, datasetio, eval, inference, safety",
        LOADED,
    ),
    Code.EnvironmentMissing: (SERVER, "Environment variable 'ACME_KEY' not set or empty", LOADED),
    Code.DependencyMissing: (
        SERVER,
        "acme-echo 0.1.0 of provider 'my-echo' requires tenacity>=8, which is neither in the image of the provider "
        "nor in the distribution",
        LOADED,
    ),
    Code.ImportFailed: (
        SERVER,
        "import acme_echo.provider: ModuleNotFoundError: No module named 'tenacity'",
        LOADED,
    ),
    Code.SpecFunction: (SERVER, "acme_echo.provider has no function get_provider_spec", LOADED),
    Code.SpecRaised: (SERVER, "KeyError: 'ACME_URL'", LOADED),
    Code.SpecInvalid: (SERVER, "get_provider_spec() returned dict, not a ProviderSpec", LOADED),
    Code.Implementation: (SERVER, "acme_echo has no function get_adapter_impl", LOADED),
    Code.ConfigClass: (
        SERVER,
        "acme_echo.config.Settings: AttributeError: module 'acme_echo.config' has no attribute 'Settings'",
        LOADED,
    ),
    Code.ConfigRejected: (SERVER, "config.port: Input should be a valid integer", LOADED),
    Code.ProbeDied: (SERVER, "python was ended by SIGSEGV while the provider was loaded", LOADED),
    Code.TookTooLong: (SERVER, "it took longer than 60 s while the provider was loaded", LOADED),
    Code.ApiDiffers: (
        SERVER,
        "get_provider_spec() returns a provider of the API safety, but it is used for inference",
        LOADED,
    ),
    Code.ServiceNotReached: (
        SERVER,
        "container provider-my-echo did not answer at http://127.0.0.1:18500/healthz within 60 s: "
        "[Errno 111] Connection refused",
        LOADED,
    ),
    Code.StartFailed: (SERVER, "RuntimeError: no answer from http://acme:8000", LOADED),
    Code.NoSpace: (INSTALL, f"pip found no space left in {EXTERNAL_PROVIDERS}", {}),
    Code.NoMemory: (INSTALL, "pip ended with -9: there was not enough memory for it", {}),
    Code.WriteFailed: (
        INSTALL,
        f"{EXTERNAL_PROVIDERS}/metadata/my-echo: Permission denied",
        {},
    ),
    Code.Internal: (INSTALL, "KeyError: 'metadata'", {}),
}
"""Who says it, the reason, and about whom."""


def page() -> str:
    """The text of errors.md. Raises KeyError for a code without an example."""
    return HEADER + "".join(line for code in Code for line in _entry(code))


def _entry(code: Code) -> Iterator[str]:
    entry = code.value
    origin, reason, about = EXAMPLES[code]
    example = failure_text(Failure(code, reason, **about), origin)
    yield f"\n## `{code.name}`\n\n{entry.meaning}\n\n"
    yield f"**What to do:** {entry.resolution.replace('{api}', 'API')}\n\n```text\n{example}```\n"


if __name__ == "__main__":
    (Path(__file__).parent / "errors.md").write_text(page())
