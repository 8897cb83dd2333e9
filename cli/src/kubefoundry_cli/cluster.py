"""Select the cluster of a command: the kubeconfig's current context, unless an option names another context."""

from __future__ import annotations

import functools
import shlex
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click

from kubefoundry_cli.failure import Exit, Failure, Missing, of
from kubefoundry_cli.hint import hint, kubectl
from kubefoundry_cli.kind_name import names_kind
from kubefoundry_cli.output import clean, say
from kubefoundry_cli.suggestion import suggestion
from kubefoundry_sdk._api import foreign_text, formats, names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, NAMESPACES, Object
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable

if TYPE_CHECKING:
    from kubefoundry_sdk._cluster.client import Client
    from kubefoundry_sdk._cluster.credentials import Credentials

MANAGER = "kubefoundry-cli"
"""The field manager of all writes of the commands."""

SHORT: Final = "md"
"""The short name of ModelDeployments that the CRD defines."""

Result = TypeVar("Result")
Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Target:
    """The cluster, namespace and user that the options name; None where no option names one.

    Attributes:
        kubeconfig: The path of the kubeconfig.
        context: The context of the kubeconfig.
        namespace: The namespace.
        user: The user to impersonate.
        groups: The groups to impersonate.
    """

    kubeconfig: str | None
    context: str | None
    namespace: str | None
    user: str | None = None
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Session:
    """An open client, and the namespace of the command."""

    client: Client
    namespace: str

    async def model(self, name: str) -> Object:
        """Return the ModelDeployment of that name.

        Raises:
            Missing: The ModelDeployment does not exist.
            Failure: The ModelDeployment cannot be read.
        """
        name = name_only(name)
        try:
            return await self.client.get(MODEL_DEPLOYMENTS, name, self.namespace)
        except (ApiError, Unreachable) as error:
            failure = of(error, f"read ModelDeployment '{name}' in namespace {self.namespace}")
            if failure.exit_code == Exit.NO and isinstance(error, ApiError) and error.not_found:
                where, instead = await self._instead(name)
                lists = await self._listing()
                raise Missing(f"ModelDeployment '{name}' not found{where}; {lists}{instead}") from error
            raise failure from error

    async def models(
        self, namespace: str | None, selector: Mapping[str, str] | None = None
    ) -> tuple[list[Object], str]:
        """Return all ModelDeployments, and the resource version to watch from.

        Args:
            namespace: The namespace, None for all.
            selector: `labelSelector` and `fieldSelector` parameters.

        Raises:
            Failure: The models cannot be listed. The cause of the exception is the API error.
        """
        try:
            return await self.client.list(MODEL_DEPLOYMENTS, namespace, selector=selector)
        except (ApiError, Unreachable) as error:
            raise cannot_list(error, namespace) from error

    async def is_missing(self, namespace: str) -> bool:
        """Check whether the namespace does not exist. A namespace that cannot be read may exist."""
        try:
            await self.client.get_metadata(NAMESPACES, namespace)
        except ApiError as error:
            return error.not_found
        except Unreachable:
            return False
        return False

    async def _listing(self) -> str:
        """Return the command that lists the models that the caller may see."""
        from kubefoundry_sdk._cluster.permission import may

        try:
            everywhere = await may(self.client, "list", MODEL_DEPLOYMENTS)
        except (ApiError, Unreachable):
            everywhere = True
        if everywhere:
            return f"{hint('status -A')} lists all"
        return f"{hint('status', self.namespace)} lists those of the namespace"

    async def _instead(self, name: str) -> tuple[str, str]:
        """Return where the model was not found, and a suggestion for its name."""
        where = f" in namespace {self.namespace}"
        try:
            deployments, _ = await self.models(self.namespace)
        except Failure:
            return where, ""
        if not deployments and await self.is_missing(self.namespace):
            return f": namespace {self.namespace} does not exist", ""
        return where, clean(suggestion(name, [obj["metadata"]["name"] for obj in deployments]))


def cannot_list(error: ApiError | Unreachable, namespace: str | None) -> Failure:
    """Return the failure to list ModelDeployments in a namespace, or in all namespaces if it is None."""
    where = f"namespace {namespace}" if namespace else "all namespaces"
    return of(error, f"list ModelDeployments in {where}")


def no_namespace(namespace: str) -> str:
    """Return the message about a namespace that does not exist."""
    return (
        f"namespace {namespace} does not exist; name another one with -n, or "
        f"{kubectl(f'create namespace {shlex.quote(namespace)}')}"
    )


def name_only(name: str) -> str:
    """Return the model's name, also from `modeldeployment/NAME`. Raises Failure."""
    kind, slash, rest = name.rpartition("/")
    if slash and not names_kind(kind, MODEL_DEPLOYMENTS, [SHORT]):
        closest = suggestion(kind.lower(), [MODEL_DEPLOYMENTS.kind.lower(), MODEL_DEPLOYMENTS.plural, SHORT])
        raise Failure(
            f"'{foreign_text.shown(name)}' is not a model's name: write NAME or modeldeployment/NAME{closest}",
            Exit.USAGE,
        )
    if not rest:
        raise Failure("the name of the model is empty: name one", Exit.USAGE)
    return object_name(rest, "a model's name")


def object_name(name: str, what: str) -> str:
    """Return the name. Raises Failure if no object can have it, `what` being for example "a model's name"."""
    if not formats.is_name(name):
        raise Failure(
            f"{foreign_text.shown(name)} cannot be {what}: use lower-case letters, digits, inner dashes and dots, "
            "at most 253 characters",
            Exit.USAGE,
        )
    return name


def namespace_name(name: str, note: str = "") -> str:
    """Return the name. Raises Failure, whose message ends with `note`, if no Namespace can have the name."""
    if not formats.is_namespace(name):
        raise Failure(
            f"{foreign_text.shown(name)} cannot be a namespace's name: use lower-case letters, digits and inner "
            f"dashes, at most 63 characters{note}",
            Exit.USAGE,
        )
    return name


def options(command: Command) -> Command:
    """Add the options that name cluster, namespace and user; the command gets them as `target`."""

    @click.option("--kubeconfig", metavar="FILE", help="Default: KUBECONFIG, then ~/.kube/config.")
    @click.option("--context", metavar="NAME", help="Default: the kubeconfig's current context.")
    @click.option("-n", "--namespace", metavar="NAME", help="Default: the context's namespace.")
    @click.option("--as", "user", metavar="USER", help="Act on behalf of that user.")
    @click.option(
        "--as-group",
        "groups",
        metavar="GROUP",
        multiple=True,
        help="Also impersonate this group; needs --as.",
    )
    @functools.wraps(command)
    def with_target(
        *arguments: Any,
        kubeconfig: str | None,
        context: str | None,
        namespace: str | None,
        user: str | None,
        groups: tuple[str, ...],
        **rest: Any,
    ) -> Any:
        if not all(name.isprintable() for name in (user or "", *groups)):
            raise Failure("--as and --as-group take names without line breaks", Exit.USAGE)
        if namespace:
            namespace_name(namespace)
        return command(*arguments, target=Target(kubeconfig, context, namespace, user, groups), **rest)

    return cast(Command, with_target)


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a command's coroutine. Raises Failure; Ctrl-C exits with 130."""
    # Imported here, because a list of models does not need it.
    import asyncio

    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        raise SystemExit(130) from None


@asynccontextmanager
async def session(target: Target) -> AsyncIterator[Session]:
    """Open a session with the cluster. Raises Failure if there is no usable kubeconfig."""
    # 0.2 s of imports that a command without a cluster does not need
    from kubefoundry_sdk._cluster.client import Client

    who, namespace = identity(target)
    async with Client(who, user_agent=MANAGER, warned=_warned()) as client:
        yield Session(client, namespace)


def _warned() -> Callable[[str], None]:
    """Return a function that prints each warning of the API server once."""
    # Not about the user's manifest: the command line itself asks for the version that older clusters serve, too.
    printed = set(names.DEPRECATIONS.values())

    def warned(text: str) -> None:
        if text not in printed:
            printed.add(text)
            say(f"warning: {clean(text)}")

    return warned


def identity(target: Target) -> tuple[Credentials, str]:
    """Return the credentials and the namespace of a target. Raises Failure."""
    from kubefoundry_sdk._cluster import credentials

    try:
        who = credentials.from_kubeconfig(target.kubeconfig, target.context)
        namespace = target.namespace or namespace_name(
            credentials.context_namespace(target.kubeconfig, target.context),
            "; the kubeconfig's context names it, and -n another one",
        )
    except credentials.NoCredentials as error:
        raise Failure(str(error), Exit.NO_CLUSTER) from error
    # as for kubectl, an option replaces one field of the kubeconfig's user, and leaves the others
    who = replace(who, user=target.user or who.user, groups=target.groups or who.groups)
    if who.groups and not who.user:
        raise Failure("--as-group needs --as", Exit.USAGE)
    return who, namespace
