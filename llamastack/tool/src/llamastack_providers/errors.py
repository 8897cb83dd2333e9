"""The closed table of what can go wrong, and the exception that carries an entry of it.

Texts of DependencyConflict and ApiMismatch: sources §5.2 "Error Message Requirements". docs/llamastack/errors.md is
generated from here.
"""

from __future__ import annotations

from enum import Enum

from llamastack_providers.entry import PACKAGES_NOTE, Entry


class Code(Enum):
    """One entry for each cause that a user resolves in another way."""

    BadCall = Entry(
        "The tool was called in a way it does not understand",
        "The input that the operator hands to its tool is not what this version of the tool expects.",
        "Let operator and tool be of one version: annotate the LlamaStackDistribution with a new refresh value.",
        exit_code=2,
    )
    MissingSpec = Entry(
        "Cannot install provider '{id}': its image holds no metadata",
        "The provider image has no file `/lls-provider/lls-provider-spec.yaml`.",
        "Add the file to the image, or correct spec.server.externalProviders if this is not a provider image.",
    )
    InvalidYaml = Entry(
        "A file is not valid YAML",
        "The file named in the reason cannot be parsed; line and column say where.",
        "Correct the file at that line and column.",
    )
    InvalidSpec = Entry(
        "Cannot install provider '{id}': its metadata breaks a rule",
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
        "Cannot install provider '{id}': a wheel lies outside of /lls-provider",
        "A path in `lls-provider-spec.yaml`, or a link in the image, leads out of `/lls-provider`.",
        "Put the wheel itself below /lls-provider and name it there.",
    )
    MissingWheel = Entry(
        "Cannot install provider '{id}': a wheel is missing",
        "A path in `wheelPath` or `dependencyWheels` leads to no file.",
        "Copy the wheel into the image, or correct the path in lls-provider-spec.yaml.",
    )
    NoPackages = Entry(
        "Cannot install provider '{id}': its image holds no wheels",
        "`/lls-provider/packages/` is missing, or has no `*.whl` in it.",
        "Copy the provider's wheel and its dependencies' wheels into /lls-provider/packages/ of the image.",
    )
    BadWheel = Entry(
        "Cannot install provider '{id}': a wheel cannot be read",
        "A file ends in `.whl` and is not a wheel: its name or its contents are broken.",
        "Build the wheel again (python -m build --wheel) and rebuild the image.",
    )
    DuplicateWheel = Entry(
        "Cannot install provider '{id}': one package comes in two wheels",
        "Two wheels of one package would be installed from the same image.",
        "Leave one of them in the image, or list those that are meant in spec.dependencyWheels.",
    )
    WrongPlatform = Entry(
        "Provider '{id}' is built for another Python or platform",
        "The tags of a wheel (Python version, ABI, libc, processor) fit no interpreter of this container.",
        "Build the wheels in an image with the Python version, libc and architecture of the distribution image.",
    )
    WrongArchitecture = Entry(
        "Provider '{id}' holds native code for another architecture",
        "A shared object is for another processor than this container's, whatever the wheel's tags say.",
        "Build image and wheels for the architecture of the nodes, or place the pod on nodes of that architecture.",
    )
    PythonTooOld = Entry(
        "Provider '{id}' needs another Python version",
        "The `Requires-Python` of a wheel excludes the Python of this container.",
        "Use a provider image with the Python version of the distribution, and wheels that allow it.",
    )
    DependencyConflict = Entry(
        "Cannot install provider '{id}' due to dependency conflict",
        "Two packages that would be installed side by side exclude each other: other versions of one package, or a "
        "version that another package does not allow.",
        "Update provider images to use compatible dependency versions, or reorder providers in the CRD if one "
        "provider's dependencies are a superset of another's.",
        note=PACKAGES_NOTE,
    )
    FileClash = Entry(
        "Cannot install provider '{id}': its files are already another provider's",
        "Two providers bring a file of one name with different contents; installing both would break the first.",
        "Let the two providers use different package names, or the same version of what they share.",
        note=PACKAGES_NOTE,
    )
    PipMissing = Entry(
        "Cannot install provider '{id}': its image has no pip",
        "The image's Python cannot run `pip`.",
        "Build the provider image from one with Python and pip (python:3.12-slim); distroless images do not fit.",
    )
    PipFailed = Entry(
        "Cannot install provider '{id}': pip refused a wheel",
        "`pip install` ended with an error; the reason has pip's own words, the container's log all of them.",
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
        "The run configuration of the user ConfigMap or of the distribution has another shape than llama-stack's.",
        "Correct the field in the user ConfigMap, or provide one if the distribution's own file is wrong.",
    )
    MissingMetadata = Entry(
        "Provider '{id}' was not installed completely",
        "A file below `metadata/` of the shared volume, written by the install container, is missing.",
        "Delete the pod: its successor reinstalls all providers.",
    )
    DuplicateProvider = Entry(
        "Two external providers have the same providerId",
        "`providerId` has to be unique over all sections of `spec.server.externalProviders`.",
        "Give each external provider a providerId of its own.",
    )
    ProviderTypeTaken = Entry(
        "Provider '{id}' has a provider type that is taken",
        "Within one API llama-stack knows one implementation for each provider type, and takes the last one. "
        "Another external provider, or llama-stack itself, has the type already, or the same name as `inline::` or "
        "`remote::`.",
        "Give the provider a type of its own: providerType in lls-provider-spec.yaml and provider_type in "
        "get_provider_spec().",
    )
    ModuleShadowed = Entry(
        "Provider '{id}' brings a module that Python or the server has already",
        "Providers' packages are found before all others: a top-level module of the name of one of the standard "
        "library, or of another package of the distribution, would take its place in the server.",
        "Rename the module, or leave it out of the wheel; a package of the distribution is listed under dependencies "
        "instead of being copied.",
    )
    ServerMissing = Entry(
        "The distribution image's Python cannot import llama-stack",
        "Preflight imports providers as the server would; the server's own packages are not importable.",
        "Use a distribution image whose `python3` has llama-stack, or correct what the traceback names.",
    )
    ServerTooOld = Entry(
        "The distribution's llama-stack cannot load external providers",
        "llama-stack loads providers from packages (`module` of a provider) from release 0.2.16 on; that of the "
        "distribution image is older.",
        "Use a distribution image with llama-stack 0.2.16 or newer; docs/llamastack/releases.md lists what was run.",
    )
    ServerBroken = Entry(
        "llama-stack cannot be imported beside the providers' packages",
        "The distribution's llama-stack can be imported by itself, and not with the providers' packages before it: "
        "one of them takes the place of a package that it needs.",
        "Leave packages that the distribution has out of the provider image, or bring a version that llama-stack "
        "works with.",
    )
    ApiUnknown = Entry(
        "The installed llama-stack has no such API",
        "The provider is placed under an API that this llama-stack release does not have (any more).",
        "Use a distribution image whose llama-stack has the API, or remove the provider.",
    )
    EnvironmentMissing = Entry(
        "The configuration of provider '{id}' names an environment variable that is not set",
        "`${env.NAME}` without a default is in the configuration, and the container has no such variable.",
        "Set the variable in spec.server.containerSpec.env, or write ${env.NAME:=default}.",
    )
    DependencyMissing = Entry(
        "Provider '{id}' needs a package that nobody brings",
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
        "The module `<packageName>.provider` can be imported and has no function `get_provider_spec`.",
        "Define get_provider_spec() in the module provider of the package named in spec.packageName.",
    )
    SpecRaised = Entry(
        "Provider '{id}': get_provider_spec() raised an error",
        "The function raised; a missing field of the ProviderSpec is reported here as well.",
        "Correct the function; the traceback names the line.",
    )
    SpecInvalid = Entry(
        "Provider '{id}': get_provider_spec() returned no valid ProviderSpec",
        "The result is no ProviderSpec (or list of them) of the installed llama-stack, or lacks a field.",
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
        "The interpreter ended (a crash in native code, or an exit call) while the provider was imported.",
        "Look at the container's log; native code for another libc or processor is the usual cause.",
    )
    TookTooLong = Entry(
        "Provider '{id}' did not load in time",
        "Importing the provider, or making its spec or configuration, took longer than its deadline (60 s, or the "
        "annotation `kubefoundry.ai/provider-seconds`).",
        "Do not wait, connect or compute while modules are imported; if loading has to take so long, set the "
        "annotation kubefoundry.ai/provider-seconds to more seconds.",
    )
    ApiDiffers = Entry(
        "Provider '{id}' implements another API than its metadata says",
        "`api` of the ProviderSpec differs from `api` in `lls-provider-spec.yaml`; the server would call functions "
        "that the provider does not have, and end.",
        "Let get_provider_spec() and lls-provider-spec.yaml name one API.",
    )
    StartFailed = Entry(
        "The server does not start with its external providers",
        "The last server of this pod has ended, and a trial start without a port, made because of that, failed in "
        "this provider.",
        "Correct what the reason names: the provider's code, its config, or what it connects to.",
    )
    NoSpace = Entry(
        "There is no space left for provider '{id}'",
        "The volume that providers are installed on, or the node's disk, is full.",
        "Ask who runs the cluster for more room (--provider-size-limit of the operator), or make the packages "
        "smaller.",
    )
    NoMemory = Entry(
        "There is not enough memory for provider '{id}'",
        "The tool, or pip, needed more memory than the container may have.",
        "Ask who runs the cluster for a higher limit (--init-resources of the operator), or make the wheels smaller.",
    )
    WriteFailed = Entry(
        "A file could not be read or written",
        "The system refused an operation on a file: no permission, or an unreadable file in the image.",
        "Check the image's file permissions and user, and the size limit of the volume.",
    )
    Internal = Entry(
        "The tool failed unexpectedly",
        "A defect of the tool; the traceback follows.",
        "Report it with the container's log; the provider itself may be right.",
    )


class Failure(Exception):
    """code: the entry. reason: what exactly, one or few lines. detail: whatever helps, any length.

    provider_id, image, container, module: about whom; empty where the caller at the edge knows better.
    quoted: whether reason and detail repeat words of a provider, which may hold anything that it knows.
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
