"""`kubefoundry provider list|install|upgrade|uninstall|new|manifest`: the providers of a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import click

from kubefoundry_cli import cluster, output, providers, server
from kubefoundry_cli.cluster import Target
from kubefoundry_cli.edit import YES
from kubefoundry_cli.failure import Exit, Failure, of
from kubefoundry_cli.health import provider_of
from kubefoundry_cli.hint import hint
from kubefoundry_cli.install import bundle, change, origin, run
from kubefoundry_cli.install.options import (
    EJECT,
    FORCE,
    MIRROR,
    REGISTRY,
    TIMEOUT,
    WAIT,
    dry_run,
    in_its_namespace,
    one_of,
)
from kubefoundry_cli.install.rights import rights
from kubefoundry_cli.new.commands import manifest, new
from kubefoundry_cli.output import age, say
from kubefoundry_cli.providers import silence
from kubefoundry_sdk._api.kinds import PROVIDER_CONFIGS, Object
from kubefoundry_sdk._api.untrusted import part
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable


@click.group()
def command() -> None:
    """Install, list, remove or write providers."""


@command.command("list", short_help="List providers.")
@output.option(*output.LISTS)
@cluster.options
def listed(form: str, target: Target) -> None:
    """List the providers of the cluster, and those that come with this command line."""

    async def work() -> tuple[list[Object], Counter[str | None] | None]:
        async with cluster.session(target) as session:
            try:
                configs, _ = await session.client.list(PROVIDER_CONFIGS)
            except (ApiError, Unreachable) as error:
                raise of(error, "list InferenceProviderConfigs") from error
            try:
                models = await run.models(session)
            except Failure as failure:
                # Users of one namespace may not count the models of all.
                if failure.exit_code != Exit.FORBIDDEN:
                    raise
                return configs, None
            return configs, Counter(provider_of(model) for model in models)

    configs, count = cluster.run(work())
    output.objects(configs, form, PROVIDER_CONFIGS, lambda wide: _rows(configs, count, wide=wide))
    missing = sorted(set(bundle.providers()) - {config["metadata"]["name"] for config in configs})
    if missing and form in ("table", "wide"):
        say(
            f"not registered: {', '.join(missing)}; {hint('provider install NAME')} "
            "(an installed one registers itself once it runs)"
        )


def _rows(
    configs: Sequence[Object], count: Mapping[str | None, int] | None, *, wide: bool
) -> tuple[list[str], list[list[str]]]:
    """Return head and cells. `count` is the number of models by provider, None if the caller may not list them."""
    head = ["NAME", "READY", "UPSTREAM", "HEARTBEAT", "MODELS"]
    rows = [[*_row(config, count), *(_build(config) if wide else ())] for config in configs]
    return [*head, "VERSION", "FLAGS"] if wide else head, rows


def _row(config: Object, count: Mapping[str | None, int] | None) -> list[str]:
    name, status = config["metadata"]["name"], config.get("status") or {}
    return [
        name,
        "Unknown" if silence(config) else str(status.get("ready") is True),
        str(status.get("upstreamCRDVersion") or "<none>"),
        age(status.get("lastHeartbeat")),
        "?" if count is None else str(count.get(name, 0)),
    ]


def _build(config: Object) -> list[str]:
    """Return the version of a provider and its flags."""
    status, flags = part(config, "status"), part(config, "status", "flags")
    pairs = " ".join(f"{flag}={text}" for flag, text in sorted(flags.items()))
    return [str(status.get("version") or "<none>"), pairs or "-"]


@command.command(short_help="Install a provider, or bring it to this version.")
@click.argument("provider")
@click.option("--sha256", metavar="HASH", help="SHA-256 of the manifest; required for a URL.")
@click.option("--allow", is_flag=True, help="Accept the rights of a foreign manifest that are marked with !.")
@REGISTRY
@MIRROR
@WAIT
@FORCE
@dry_run
@YES
@cluster.options
def install(
    provider: str,
    sha256: str | None,
    allow: bool,
    registry: str | None,
    mirror: str | None,
    wait: float | None,
    force: bool,
    dry_run: bool,
    yes: bool,
    target: Target,
) -> None:
    """Install PROVIDER, or bring it to this version: a name, the file of a manifest, or its https URL.

    Shows every object and every right that is asked for, and asks before it writes.
    """
    in_its_namespace(target)

    async def work() -> None:
        objects = await _objects(provider, sha256, registry, mirror, allow=allow or dry_run)
        async with cluster.session(target) as session:
            await server.supported(session)
            await run.install(
                session,
                objects,
                what=f"provider {_registered(objects) or provider}",
                dry_run=dry_run,
                yes=yes,
                force=force,
                wait=wait,
                keeps_mirror=mirror is None and _is_included(provider),
            )

    cluster.run(work())


command.add_command(install, "upgrade")
command.add_command(new)
command.add_command(manifest)


@command.command(short_help="Remove a provider; refuses while models run on it.")
@click.argument("provider")
@click.option("--sha256", metavar="HASH", help="SHA-256 of the manifest; required for a URL.")
@EJECT
@click.option("--delete-models", is_flag=True, help="Delete the ModelDeployments that run on it first.")
@TIMEOUT
@YES
@cluster.options
def uninstall(
    provider: str,
    sha256: str | None,
    eject: bool,
    delete_models: bool,
    timeout: float,
    yes: bool,
    target: Target,
) -> None:
    """Remove PROVIDER (a name, or the manifest that installed it) and its registration.

    A name suffices for our providers and for one whose package is installed with this command.

    Refuses while models run on it, unless --eject keeps them running without KubeFoundry, or --delete-models deletes
    them first.
    """
    one_of(eject, delete_models)

    async def work() -> None:
        objects = _of_package(provider) or await _objects(provider, sha256, allow=True)
        name = _registered(objects) or provider
        async with cluster.session(target) as session:
            deployments = await run.models(session, name)
            if not (delete_models or eject):
                run.refuse_while_needed(deployments, f"provider {name}")
            changes = await run.existing(session, objects, keep=("Namespace", "CustomResourceDefinition"))
            registration = await change.existing(session, PROVIDER_CONFIGS, {"metadata": {"name": name}})
            if not changes and registration is None:
                say(f"provider {name} is not installed: nothing to do")
                return
            shown = [*changes, *([registration] if registration else [])]
            what = f"provider {name}"
            await run.clear(session, deployments, shown, what, eject=eject, yes=yes, seconds=timeout)
            await run.delete(session, changes, report=True)
            # Delete the registration last: a running provider would register again.
            if registration is not None:
                await run.delete(session, [registration], report=True)
            say(f"provider {name} is removed")

    cluster.run(work())


async def _objects(
    named: str, sha256: str | None, registry: str | None = None, mirror: str | None = None, *, allow: bool
) -> list[Object]:
    """Return the objects of a manifest. Raises Failure for a foreign manifest with risky rights, unless `allow`."""
    if _is_included(named):
        return bundle.from_registry(bundle.provider(named), registry, mirror)
    if registry or mirror:
        raise Failure(
            "--registry and --mirror change only the providers that come with this command line: "
            f"{', '.join(bundle.providers())}; set the images in the manifest",
            Exit.USAGE,
        )
    objects = bundle.parsed(await origin.read(named, sha256), named)
    risky = [right for right in rights(objects) if right.risky]
    if risky and not allow:
        shown = "; ".join(f"{right.role}: {right.text}" for right in risky[: run.SHOWN])
        raise Failure(
            f"{named} asks for rights that you should check: {output.clean(shown)}. --dry-run shows all, "
            "--allow accepts them",
            Exit.FORBIDDEN,
        )
    return objects


def _is_included(named: str) -> bool:
    """Check whether the argument is a name, and not the file or URL of a manifest."""
    return "/" not in named and not named.endswith((".yaml", ".yml"))


def _of_package(name: str) -> list[Object]:
    """Return the objects of a provider whose package is installed here and whose manifest is not included."""
    from kubefoundry_sdk._provider.installation import manifest as installation_manifest

    if name in bundle.providers() or not providers.is_installed(name):
        return []
    # The image does not matter for a deletion.
    return installation_manifest(providers.named(name), "any")


def _registered(objects: list[Object]) -> str | None:
    """Return the provider's name: that of the InferenceProviderConfig whose status its role may write."""
    for obj in objects:
        for rule in obj.get("rules") or () if obj["kind"] == "ClusterRole" else ():
            if "inferenceproviderconfigs/status" in (rule.get("resources") or ()) and rule.get(
                "resourceNames"
            ):
                return str(rule["resourceNames"][0])
    return None
