"""Lists all errors, and defines the exception that carries one of them.

Texts of DependencyConflict and ApiMismatch: sources §5.2 "Error Message Requirements".
docs/llamastack/errors.md is generated from here.
"""

from __future__ import annotations

from enum import Enum

from llamastack_providers.entry import PACKAGES_NOTE, Entry


class Code(Enum):
    """One entry for each cause with its own resolution."""

    BadCall = Entry(
        "The tool does not understand what it was called with",
        "The operator passed input that this version of the tool does not expect.",
        "Use one version of operator and tool: give the LlamaStackDistribution's annotation kubefoundry.ai/refresh a "
        "new value.",
        exit_code=2,
    )
    MissingSpec = Entry(
        "Cannot install provider '{id}': its image has no metadata",
        "The provider image has no file `/lls-provider/lls-provider-spec.yaml`.",
        "Add the file to the image, or correct spec.server.externalProviders if this is not a provider image.",
    )
    InvalidYaml = Entry(
        "A file is not valid YAML",
        "The file named in the reason cannot be parsed; line and column say where.",
        "Correct the file at that line and column.",
    )
    InvalidSpec = Entry(
        "Cannot install provider '{id}': its metadata is invalid",
        "A field of `lls-provider-spec.yaml` is missing or has a value that is not allowed.",
        "Correct the field in lls-provider-spec.yaml and rebuild the image; `llamastack-providers lint` checks it.",
    )
    ApiMismatch = Entry(
        "Provider API type mismatch",
        "The image implements another API than the section of `spec.server.externalProviders` it is in.",
        "Move the provider to externalProviders.{api} section in the LLSD spec.",
        names_provider=True,
    )
    PathOutside = Entry(
        "Cannot install provider '{id}': a wheel is outside /lls-provider",
        "A path in `lls-provider-spec.yaml`, or a link in the image, points outside `/lls-provider`.",
        "Put the wheel itself into /lls-provider and use that path.",
    )
    MissingWheel = Entry(
        "Cannot install provider '{id}': a wheel is missing",
        "A path in `wheelPath` or `dependencyWheels` points to no file.",
        "Copy the wheel into the image, or correct the path in lls-provider-spec.yaml.",
    )
    NoPackages = Entry(
        "Cannot install provider '{id}': its image has no wheels",
        "`/lls-provider/packages/` is missing, or has no `*.whl` in it.",
        "Copy the provider's wheel and its dependencies' wheels into /lls-provider/packages/ of the image.",
    )
    BadWheel = Entry(
        "Cannot install provider '{id}': a wheel cannot be read",
        "A file ends in `.whl` but is not a valid wheel: its name or its content is broken.",
        "Build the wheel again (python -m build --wheel) and rebuild the image.",
    )
    DuplicateWheel = Entry(
        "Cannot install provider '{id}': two wheels contain the same package",
        "The image has two wheels of the same package to install.",
        "Remove one of them from the image, or list the wheels to install in spec.dependencyWheels.",
    )
    WrongPlatform = Entry(
        "Provider '{id}' is built for another Python or platform",
        "The tags of a wheel (Python version, ABI, libc, processor) fit no interpreter of this container.",
        "Build the wheels in an image with the Python version, libc and architecture of the distribution image.",
    )
    WrongArchitecture = Entry(
        "Provider '{id}' contains native code for another architecture",
        "A shared object is for another processor than this container's, whatever the wheel's tags say.",
        "Build image and wheels for the architecture of the nodes, or place the pod on nodes of that architecture.",
    )
    PythonTooOld = Entry(
        "Provider '{id}' needs another Python version",
        "The `Requires-Python` of a wheel excludes the Python of this container.",
        "Use a provider image with the Python version of the distribution, and wheels that allow it.",
    )
    ServiceMissing = Entry(
        "Cannot install provider '{id}': its image has no service",
        "The provider has `service` in the LlamaStackDistribution, but the image's `lls-provider-spec.yaml` has no "
        "`spec.service`.",
        "Remove service from the provider in spec.server.externalProviders, or use an image of the provider that has "
        "a service.",
    )
    ServiceNeeded = Entry(
        "Cannot install provider '{id}': it cannot work without its service",
        "`spec.service.required` in the image's `lls-provider-spec.yaml` is true (the default), but the provider has "
        "no `service` in the LlamaStackDistribution.",
        "Add service to the provider in spec.server.externalProviders.",
    )
    TransportUnsupported = Entry(
        "Cannot install provider '{id}': it does not support the transport of its service",
        "`spec.service.transports` in the image's `lls-provider-spec.yaml` does not list the transport that the "
        "LlamaStackDistribution has for the service.",
        "Set service.transport of the provider in spec.server.externalProviders to a transport of the image.",
    )
    ConfigKeyTaken = Entry(
        "Cannot install provider '{id}': its config has the key for the service's address",
        "The provider has a service, whose address is written into `config` under the key that the image's "
        "`lls-provider-spec.yaml` names (`spec.service.configKey`). The LlamaStackDistribution sets the same key.",
        "Remove the key from config of the provider in spec.server.externalProviders, or remove its service.",
    )
    DependencyConflict = Entry(
        "Cannot install provider '{id}' due to dependency conflict",
        "Two packages cannot be installed together: they are different versions of one package, or one of them does "
        "not allow the version of the other.",
        "Update provider images to use compatible dependency versions, or reorder providers in the CRD if one "
        "provider's dependencies are a superset of another's.",
        note=PACKAGES_NOTE,
    )
    FileClash = Entry(
        "Cannot install provider '{id}': another provider already has one of its files",
        "Two providers have different files with the same path; installing both would break the first.",
        "Use different package names in the two providers, or the same version of the package that they share.",
        note=PACKAGES_NOTE,
    )
    PipMissing = Entry(
        "Cannot install provider '{id}': its image has no pip",
        "The image's Python cannot run `pip`.",
        "Build the provider image from one with Python and pip (python:3.12-slim); distroless images do not fit.",
    )
    PipFailed = Entry(
        "Cannot install provider '{id}': pip refused a wheel",
        "`pip install` failed; the reason quotes pip, and the container's log has its whole output.",
        "Check that the wheels fit the Python of the image and are complete; try them with `pip install --no-deps`.",
    )
    NoBaseConfig = Entry(
        "No run.yaml found in distribution image",
        "The distribution image has no configuration file at any of the places the message lists.",
        "Either provide a user ConfigMap with run.yaml or use a distribution image that includes run.yaml.",
    )
    BaseConfigMissing = Entry(
        "The base configuration is missing",
        "`/opt/llama-stack/base-config/run.yaml` does not exist, or is not a configuration.",
        "Put a run configuration under the key config.yaml of the user ConfigMap.",
    )
    InvalidBaseConfig = Entry(
        "The base configuration cannot be merged",
        "The run configuration of the user ConfigMap or of the distribution is not structured as llama-stack's is.",
        "Correct the field in the user ConfigMap, or provide one if the distribution's own file is wrong.",
    )
    MissingMetadata = Entry(
        "Provider '{id}' was not installed completely",
        "A file below `metadata/` of the shared volume, written by the install container, is missing.",
        "Delete the pod: the new one reinstalls all providers.",
    )
    DuplicateProvider = Entry(
        "Two external providers have the same providerId",
        "`providerId` has to be unique over all sections of `spec.server.externalProviders`.",
        "Give each external provider its own providerId.",
    )
    ProviderTypeTaken = Entry(
        "Provider '{id}' has a provider type that is already in use",
        "llama-stack keeps one implementation for each API and provider type: the last one that it loads. Another "
        "external provider, or llama-stack itself, already has the type, or one that differs only in `inline::` and "
        "`remote::`.",
        "Give the provider its own type: providerType in lls-provider-spec.yaml and provider_type in "
        "get_provider_spec().",
    )
    ModuleShadowed = Entry(
        "Provider '{id}' has a module that would hide one of Python or the server",
        "Python looks at providers' packages first: a top-level module with the name of a standard library module, "
        "or of another package's module in the distribution, would replace it in the server.",
        "Rename the module, or remove it from the wheel. If it is a copy of a package of the distribution, list that "
        "package as a dependency instead.",
    )
    ServerMissing = Entry(
        "The distribution image's Python cannot import llama-stack",
        "Preflight imports providers as the server would, but it cannot import the server's own packages.",
        "Use a distribution image whose `python3` has llama-stack, or correct what the traceback names.",
    )
    ServerTooOld = Entry(
        "The distribution's llama-stack cannot load external providers",
        "llama-stack can load providers from packages (`module` of a provider) since release 0.2.16; the "
        "distribution image has an older release.",
        "Use a distribution image with llama-stack 0.2.16 or newer; docs/llamastack/releases.md lists the tested "
        "releases.",
    )
    ServerBroken = Entry(
        "llama-stack cannot be imported together with the providers' packages",
        "The distribution's llama-stack can be imported alone, but not with the providers' packages installed: one "
        "of them replaces a package that llama-stack needs.",
        "Remove packages that the distribution has from the provider image, or include a version that llama-stack "
        "works with.",
    )
    ApiUnknown = Entry(
        "The installed llama-stack has no such API",
        "The provider is listed under an API that this llama-stack release does not have.",
        "Use a distribution image whose llama-stack has the API, or remove the provider.",
    )
    EnvironmentMissing = Entry(
        "The configuration of provider '{id}' uses an environment variable that is not set",
        "The configuration contains `${env.NAME}` without a default, and the container has no such variable.",
        "Set the variable in spec.server.containerSpec.env, or write ${env.NAME:=default}.",
    )
    DependencyMissing = Entry(
        "Provider '{id}' needs a package that is not installed",
        "A package of a provider requires another that is neither in its image nor in the distribution.",
        "Add the wheel to the provider image (and to spec.dependencyWheels, where that is set).",
    )
    ImportFailed = Entry(
        "Provider '{id}' cannot be imported",
        "Importing the provider's module raised an error; the traceback follows.",
        "Correct the module, or add the missing wheel to the image; optional imports belong in try/except.",
    )
    SpecFunction = Entry(
        "Provider '{id}' has no get_provider_spec()",
        "The module `<packageName>.provider` can be imported but has no function `get_provider_spec`.",
        "Define get_provider_spec() in the module provider of the package named in spec.packageName.",
    )
    SpecRaised = Entry(
        "Provider '{id}': get_provider_spec() raised an error",
        "The function raised an error. A missing field of the ProviderSpec is reported here, too.",
        "Correct the function; the traceback names the line.",
    )
    SpecInvalid = Entry(
        "Provider '{id}': get_provider_spec() returned no valid ProviderSpec",
        "The result is not a ProviderSpec of the installed llama-stack (or a list of them), or it lacks a field.",
        "Return a RemoteProviderSpec or InlineProviderSpec with provider_type, config_class and module.",
    )
    Implementation = Entry(
        "Provider '{id}' has no implementation function",
        "The spec's `module` lacks `get_adapter_impl` (remote) or `get_provider_impl` (inline).",
        "Define the function in the module that the ProviderSpec names.",
    )
    ConfigClass = Entry(
        "Provider '{id}': its config_class cannot be imported",
        "The class that `config_class` of the ProviderSpec names does not exist.",
        "Correct config_class in get_provider_spec(): a dotted path to a class.",
    )
    ConfigRejected = Entry(
        "Provider '{id}' rejects its configuration",
        "The provider's config class does not accept `config` of the LlamaStackDistribution.",
        "Correct config under the provider in spec.server.externalProviders.",
    )
    ProbeDied = Entry(
        "Python died while loading provider '{id}'",
        "The interpreter exited while it imported the provider: it crashed in native code, or called exit.",
        "See the container's log; native code for another libc or processor is the usual cause.",
    )
    TookTooLong = Entry(
        "Provider '{id}' did not load in time",
        "Importing the provider, or making its spec or configuration, took longer than its deadline (60 s, or the "
        "annotation `kubefoundry.ai/provider-seconds`).",
        "Do not wait, connect or compute while modules are imported. If loading has to take that long, set the "
        "annotation kubefoundry.ai/provider-seconds to more seconds.",
    )
    ApiDiffers = Entry(
        "Provider '{id}' implements another API than its metadata says",
        "`api` of the ProviderSpec differs from `api` in `lls-provider-spec.yaml`; the server would call functions "
        "that the provider does not have, and exit.",
        "Use the same API in get_provider_spec() and lls-provider-spec.yaml.",
    )
    ServiceNotReached = Entry(
        "The service of provider '{id}' did not become ready",
        "The server waits for each required service, but the service did not answer within its time to start "
        "(`service.health.startSeconds`).",
        "See the log of the container that the reason names. If the service needs longer to start, raise "
        "service.health.startSeconds of the provider in spec.server.externalProviders.",
    )
    StartFailed = Entry(
        "The server does not start with its external providers",
        "The last server of this pod exited. Preflight therefore ran the server's startup without a port, and it "
        "failed in this provider.",
        "Correct the cause that the reason names: the provider's code, its config, or what it connects to.",
    )
    NoSpace = Entry(
        "There is no space left to install provider '{id}'",
        "The volume that providers are installed on, or the node's disk, is full.",
        "Ask the cluster's administrator to raise the limit (--provider-size-limit of the operator), or make the "
        "packages smaller.",
    )
    NoMemory = Entry(
        "There is not enough memory to install provider '{id}'",
        "The tool or pip needed more memory than the container's limit.",
        "Ask the cluster's administrator to raise it (--init-resources of the operator), or make the wheels smaller.",
    )
    WriteFailed = Entry(
        "A file could not be read or written",
        "The system refused a file operation: a permission is missing, or a file in the image is unreadable.",
        "Check the image's file permissions and user, and the size limit of the volume.",
    )
    Internal = Entry(
        "The tool failed unexpectedly",
        "An error in the tool itself; the traceback follows.",
        "Report it with the container's log; the provider may be fine.",
    )


class Failure(Exception):
    """A failure of the tool.

    Attributes:
        code: The entry of the table.
        reason: The exact problem in one or few lines.
        detail: Further help, of any length.
        provider_id, image, container, module: Subject of the failure, empty if the caller knows it
            better.
        quoted: Whether reason and detail repeat a provider's words, which may contain anything that it
            knows.
    """

    def __init__(
        self,
        code: Code,
        reason: str,
        *,
        detail: str = "",
        provider_id: str = "",
        image: str = "",
        module: str = "",
        api: str = "",
        quoted: bool = False,
    ) -> None:
        super().__init__(f"{code.name}: {reason}")
        self.code = code
        self.reason = reason
        self.detail = detail
        self.provider_id = provider_id
        self.image = image
        self.module = module
        self.api = api
        self.quoted = quoted
