"""Loads providers as the llama-stack server does, each in its own process.

A crash, an exit or a fork ends only that process. Run as `python -B -c SOURCE FILE_DESCRIPTOR`. llama-stack is
imported once. Then each line of standard input requests a provider (an entry of run.yaml) or a start of the whole
server, and a copy of this process (fork) answers. Answers are JSON, one line each. Uses only the standard library,
and nothing of this package, so that its imports resolve like the server's. Rules of loading:
llama_stack/core/distribution.py and resolver.py, 0.7.3. Tested releases: docs/llamastack/releases.md.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import IO, Any

API_MODULES = ("llama_stack_api", "llama_stack.providers.datatypes", "llama_stack.apis.datatypes", "ogx_api")
STACK_MODULES = ("llama_stack.core.stack", "llama_stack.distribution.stack", "ogx.core.stack")
REGISTRY_MODULES = (
    "llama_stack.core.distribution",
    "llama_stack.distribution.distribution",
    "ogx.core.distribution",
)
SERVERS = ("llama_stack", "ogx")
"""Packages of the server: llama-stack is called OGX since 0.8."""
FUNCTIONS = {"remote": "get_adapter_impl", "inline": "get_provider_impl"}

Answer = dict[str, Any]
Errors = list[tuple[str, BaseException]]
"""The module that could not be imported, or lacks an attribute, and why."""


def problem(code: str, reason: str, trace: bool = False) -> Answer:
    """Build a problem from a code of the table, a reason, and the traceback of the current exception.

    `quoted` is true if the words are a provider's, which may repeat anything that it knows.
    """
    return {
        "code": code,
        "reason": reason,
        "detail": traceback.format_exc() if trace else "",
        "quoted": trace,
    }


def describe(error: BaseException) -> str:
    """Describe the error and its causes, the root cause last."""
    parts: list[str] = []
    current: BaseException | None = error
    while current is not None and len(parts) < 5:
        parts.append(f"{type(current).__name__}: {text_of(current)}".strip())
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return "; from ".join(parts)


def text_of(error: BaseException) -> str:
    """Return the error's own text. A provider's `__str__` may raise."""
    try:
        return str(error)
    except Exception as other:
        return f"(its text cannot be read: {type(other).__name__})"


def first_of(modules: tuple[str, ...], name: str, errors: Errors) -> Any:
    """Return the attribute from the first of the modules that can be imported and has it, or None."""
    for module in modules:
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            errors.append((module, error))
    return None


def describe_missing(errors: Errors) -> str:
    """Describe the failed imports, without modules of other releases unless there are no others."""
    present = [(module, error) for module, error in errors if not is_of_other_release(module, error)]
    return "; ".join(dict.fromkeys(f"{module}: {describe(error)}" for module, error in present or errors))


def is_of_other_release(module: str, error: BaseException) -> bool:
    """Check whether the module itself does not exist, rather than one that it imports."""
    return isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}.")


def import_object(path: str) -> Any:
    """Import the object at `package.module.Name`."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def release() -> str:
    """Return name and version of the server's package."""
    # Imported here, because it takes a third of this process' start, and a recent server does not need it.
    import importlib.metadata

    for package in SERVERS:
        try:
            return f"{package} {importlib.metadata.version(package)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return "an unknown release of llama-stack"


class Server:
    """The installed llama-stack.

    Attributes:
        apis: Its APIs.
        spec_class: Its class of specs, None if it has none.
        expand: Its expansion of `${env.X}`, None if it has none.
        missing: The missing parts, empty if it is complete.
        too_old: Whether its specs have no field `module`.
        types: Its built-in provider types by API.
    """

    def __init__(self) -> None:
        errors: Errors = []
        api = first_of(API_MODULES, "Api", errors)
        self.apis = [member.value for member in api] if api else []
        self.spec_class: Any = first_of(API_MODULES, "ProviderSpec", errors)
        self.expand: Callable[[Any], Any] | None = first_of(STACK_MODULES, "replace_env_vars", errors)
        registry = first_of(REGISTRY_MODULES, "get_provider_registry", errors)
        is_missing = None in (api, self.spec_class, self.expand, registry)
        self.missing = describe_missing(errors) if is_missing else ""
        self.too_old = not is_missing and "module" not in getattr(
            self.spec_class, "model_fields", ("module",)
        )
        self.types: dict[str, list[str]] = {}
        if not is_missing and not self.too_old:
            self.types = {member.value: sorted(specs) for member, specs in registry().items()}


def check(server: Server, section: str, entry: Answer, token_file: str) -> Answer:
    """Return `type`, `api` and `takes_token` of the provider's spec, or a problem."""
    if section not in server.apis:
        return problem("ApiUnknown", f"API '{section}' is not one of {', '.join(sorted(server.apis))}")
    package = str(entry["module"]).split("==")[0]
    try:
        module = importlib.import_module(f"{package}.provider")
    except BaseException as error:
        return problem("ImportFailed", f"import {package}.provider: {describe(error)}", trace=True)
    function = getattr(module, "get_provider_spec", None)
    if not callable(function):
        return problem("SpecFunction", f"{package}.provider has no function get_provider_spec")
    try:
        result = function()
    except BaseException as error:
        return problem("SpecRaised", describe(error), trace=True)
    specs = result if isinstance(result, list) else [result]
    for spec in specs:
        if not isinstance(spec, server.spec_class):
            return problem(
                "SpecInvalid", f"get_provider_spec() returned {type(spec).__name__}, not a ProviderSpec"
            )
    chosen = choose(specs, section, entry.get("provider_type", ""))
    if chosen is None:
        types = ", ".join(str(spec.provider_type) for spec in specs) or "nothing"
        return problem(
            "SpecInvalid", f"get_provider_spec() returned {types}; none is {entry.get('provider_type')}"
        )
    if defect := check_api(chosen, section) or check_references(chosen):
        return defect
    config = entry.get("config") or {}
    takes_token = bool(token_file) and "token_file" not in config and has_field(chosen, "token_file")
    if takes_token:
        entry = {**entry, "config": {**config, "token_file": token_file}}
    return check_config(server, chosen, entry) or {
        "type": str(chosen.provider_type),
        "api": api_of(chosen),
        "takes_token": takes_token,
    }


def has_field(spec: Any, name: str) -> bool:
    """Check whether the configuration class of the spec, a pydantic model, has the field."""
    return name in getattr(import_object(spec.config_class), "model_fields", ())


def choose(specs: list[Any], section: str, provider_type: str) -> Any:
    """Return the spec of the stated type, else the only one, else the only one of the section's API."""
    exact = [spec for spec in specs if spec.provider_type == provider_type]
    fitting = specs if len(specs) == 1 else [spec for spec in specs if api_of(spec) == section]
    return (exact or (fitting if len(fitting) == 1 else []) or [None])[0]


def api_of(spec: Any) -> str:
    """Return the API of a provider's spec."""
    return str(getattr(spec.api, "value", spec.api))


def check_api(spec: Any, section: str) -> Answer | None:
    """Check the API of the spec.

    A provider of another API lacks the functions that the server would call.
    """
    if api_of(spec) == section:
        return None
    text = f"get_provider_spec() returns a provider of the API {api_of(spec)}, but it is used for {section}"
    return problem("ApiDiffers", text)


def check_references(spec: Any) -> Answer | None:
    """Check the objects that the spec refers to."""
    for field in ("provider_type", "config_class", "module"):
        value = getattr(spec, field, None)
        if not value or not isinstance(value, str):
            defect = f"whose {field} is not a text" if value else f"that has no {field}"
            return problem("SpecInvalid", f"get_provider_spec() returned a ProviderSpec {defect}")
    function = FUNCTIONS["remote" if hasattr(spec, "adapter_type") else "inline"]
    try:
        module = importlib.import_module(spec.module)
    except BaseException as error:
        return problem("ImportFailed", f"import {spec.module}: {describe(error)}", trace=True)
    if not callable(getattr(module, function, None)):
        return problem("Implementation", f"{spec.module} has no function {function}")
    try:
        import_object(spec.config_class)
    except BaseException as error:
        return problem("ConfigClass", f"{spec.config_class}: {describe(error)}", trace=True)
    return None


def check_config(server: Server, spec: Any, entry: Answer) -> Answer | None:
    """Check the configuration. A problem never contains its values, which may be secret."""
    assert server.expand is not None
    try:
        enabled = server.expand([{"provider_id": entry["provider_id"], "config": entry.get("config") or {}}])
    except Exception as error:
        return problem("EnvironmentMissing", str(error))
    if not enabled or not enabled[0]["provider_id"]:
        return None
    try:
        import_object(spec.config_class)(**enabled[0]["config"])
    except BaseException as error:
        try:
            return problem("ConfigRejected", describe_rejection(error))
        except BaseException:
            # errors() is the provider's own function, and may raise anything.
            return problem("ConfigRejected", type(error).__name__)
    return None


def describe_rejection(error: BaseException) -> str:
    """Describe only fields and kinds of errors: pydantic's own text repeats the values."""
    listed = getattr(error, "errors", None)
    if not callable(listed):
        return f"{type(error).__name__}: {error}" if isinstance(error, TypeError) else type(error).__name__
    return "; ".join(f"config.{'.'.join(map(str, item['loc']))}: {error_text(item)}" for item in listed())


def error_text(item: Any) -> str:
    """Return pydantic's words for its own kinds of errors.

    A provider's validator may put the value into its words.
    """
    return str(item["type"] if item["type"] in ("value_error", "assertion_error") else item["msg"])


def start(say: Callable[[Answer], None], config: str) -> Answer:
    """Start the whole server without a port, and announce each provider before it starts.

    llama-stack before 0.3 has no create_app. Then nothing is known.

    Returns:
        `{}`, or a problem.
    """
    os.environ["LLAMA_STACK_CONFIG"] = os.environ["OGX_CONFIG"] = config
    errors: Errors = []
    create_app = first_of(tuple(f"{package}.core.server.server" for package in SERVERS), "create_app", errors)
    original = first_of(
        tuple(f"{package}.core.resolver" for package in SERVERS), "instantiate_provider", errors
    )
    if create_app is None or original is None:
        return {}
    resolver = sys.modules[original.__module__]

    async def instantiate(provider: Any, *arguments: Any, **keywords: Any) -> Any:
        say({"turn": str(provider.provider_id)})
        implementation = await original(provider, *arguments, **keywords)
        say({"turn": ""})
        return implementation

    vars(resolver)["instantiate_provider"] = instantiate
    try:
        create_app()
    except BaseException as error:
        return problem("StartFailed", describe(error), trace=True)
    return {}


def answer(server: Server, request: Answer, say: Callable[[Answer], None]) -> Answer:
    """Answer one line of standard input."""
    if "start" in request:
        return start(say, request["start"])
    return check(server, request["section"], request["entry"], request["token_file"])


def answer_in_fork(server: Server, request: Answer, answers: IO[str], say: Callable[[Answer], None]) -> None:
    """Answer in a copy of this process, in its own process group."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        devnull = os.open(os.devnull, os.O_RDONLY)
        # The rest of standard input is for the parent.
        os.dup2(devnull, 0)
        try:
            result = answer(server, request, say)
        except BaseException as error:
            result = problem("ImportFailed", describe(error), trace=True)
        say({"found": result})
        # os._exit does not wait for threads that the provider has started.
        os._exit(0)
    say({"began": pid})
    _, status = os.waitpid(pid, 0)
    say({"ended": os.waitstatus_to_exitcode(status)})


def main() -> None:
    """Answer each line of standard input to the file descriptor in the first argument."""
    if sys.path and sys.path[0] == "":
        # Only -c puts the working directory on the path.
        del sys.path[0]
    with os.fdopen(int(sys.argv[1]), "w", encoding="utf-8") as answers:

        def say(value: Answer) -> None:
            print(json.dumps(value), file=answers, flush=True)

        try:
            server = Server()
        except BaseException as error:
            say({"found": problem("ServerMissing", describe(error), trace=True)})
            return
        if server.missing:
            say({"found": problem("ServerMissing", server.missing)})
            return
        if server.too_old:
            say({"found": problem("ServerTooOld", f"the distribution image has {release()}")})
            return
        say({"found": {"types": server.types}})
        for line in sys.stdin:
            answer_in_fork(server, json.loads(line), answers, say)


if __name__ == "__main__":
    main()
