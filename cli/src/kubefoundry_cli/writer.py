"""Find the provider package that writes a kind, by any name that kubectl accepts for the kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubefoundry_cli.cluster import SHORT, Session
from kubefoundry_cli.failure import Exit, Failure, of
from kubefoundry_cli.kind_name import names_kind
from kubefoundry_cli.suggestion import suggestion
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._provider.upstream_kind import UpstreamKind


async def writer_of(session: Session, given: str, packages: Mapping[str, Provider]) -> Provider:
    """Return the package that writes the kind.

    Args:
        session: The cluster, which knows the short names of kinds.
        given: The name of the kind.
        packages: The packages to choose from.

    Raises:
        Failure: None of the packages writes the kind, or several do.
    """
    if names_kind(given, MODEL_DEPLOYMENTS, [SHORT]):
        raise Failure("a ModelDeployment is no upstream object: there is nothing to import", Exit.USAGE)
    writers = [provider for provider in packages.values() if names_kind(given, provider.upstream)]
    if not writers:
        writers = await _writers_by_short_name(session, given, packages)
    if len(writers) > 1:
        several = ", ".join(provider.name for provider in writers)
        raise Failure(f"providers {several} all write {given}; add --provider NAME", Exit.USAGE)
    return writers[0]


async def _writers_by_short_name(
    session: Session, given: str, packages: Mapping[str, Provider]
) -> list[Provider]:
    """Return the packages whose kind has that short name, at least one. Raises Failure."""
    short = {name: await _short_names(session, provider.upstream) for name, provider in packages.items()}
    writers = [
        provider for name, provider in packages.items() if names_kind(given, provider.upstream, short[name])
    ]
    if not writers:
        raise _unknown_kind(given, packages, short)
    return writers


def _unknown_kind(
    given: str, packages: Mapping[str, Provider], short: Mapping[str, Sequence[str]]
) -> Failure:
    """Return the failure that lists the known kinds, with their short names."""
    kinds = {packages[name].upstream.kind: words for name, words in short.items()}
    shown = ", ".join(
        f"{kind} ({', '.join(words)})" if words else kind for kind, words in sorted(kinds.items())
    )
    names = [word for kind, words in kinds.items() for word in (kind.lower(), *words)]
    return Failure(
        f"no provider package that is installed with this command writes {given} (known: {shown or 'none'})"
        f"{suggestion(given.lower(), names)}",
        Exit.USAGE,
    )


async def _short_names(session: Session, kind: UpstreamKind) -> Sequence[str]:
    """Return the short names of the kind; none if the API server does not serve the kind. Raises Failure."""
    try:
        version = f"{kind.group}/{kind.version}"
        if kind.version is None:
            group = await session.client.read(f"/apis/{kind.group}")
            version = group["preferredVersion"]["groupVersion"]
        resources = (await session.client.read(f"/apis/{version}"))["resources"]
    except ApiError as error:
        if error.not_found:
            return ()
        raise of(error, f"ask for the resources of {kind.group}") from error
    except Unreachable as error:
        raise of(error, f"ask for the resources of {kind.group}") from error
    except (KeyError, TypeError):
        return ()
    return next(
        (resource.get("shortNames") or () for resource in resources if resource.get("name") == kind.plural),
        (),
    )
