"""Read the ModelDeployment of `plan` and `explain`, and predict the provider that the cluster will select."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

import click

from kubefoundry_cli.apply import applied, kept
from kubefoundry_cli.cluster import Session
from kubefoundry_cli.engine import on_engine, on_engine_of, with_kept_engine
from kubefoundry_cli.failure import Exit, Failure, of
from kubefoundry_cli.health import provider_of
from kubefoundry_cli.model import NO_UID, all_from_file, edited, invalid, valid, valid_new, valid_stored
from kubefoundry_cli.providers import as_running_all, installed
from kubefoundry_cli.selection import foreseen, pending, selected, selected_provider, with_spec
from kubefoundry_sdk._api.engine_choice import effective_engine
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._api.validation import Problem, default, validate
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_selector.candidate import provider


@dataclass(frozen=True, slots=True)
class Requested:
    """The ModelDeployment of a command.

    Attributes:
        live: The stored object, None if the cluster has no object of that name.
        obj: The object after the edit, valid and with defaults.
        notes: Fields that an apply of the file leaves as they are.
    """

    live: Object | None
    obj: Object
    notes: tuple[str, ...] = ()

    @property
    def is_edit(self) -> bool:
        """Check whether the stored spec changes."""
        return self.live is not None and self.obj["metadata"] != self.live["metadata"]


async def all_requested(
    session: Session, name: str | None, file: str | None, edits: Sequence[str]
) -> list[Callable[[], Awaitable[Requested]]]:
    """Return a function for each model, which returns it as `_stored` or `_of_file`. Raises Failure."""
    if name is not None:
        return [partial(_stored, session, name, edits)]
    return [partial(_of_file, session, obj) for obj in all_from_file(str(file), edits, session.namespace)]


async def _stored(session: Session, name: str, edits: Sequence[str]) -> Requested:
    """Return the stored object with the edits. Raises Failure."""
    live = await session.model(name)
    checked = valid(edited(live, edits)) if edits else valid_stored(live)
    return Requested(live, _on_kept_engine(with_spec(live, checked["spec"]), live))


def _on_kept_engine(obj: Object, live: Object) -> Object:
    """Return the edited object with the engine that the model keeps. Raises Failure if that cannot run the spec."""
    obj = with_kept_engine(obj, live)
    spec = on_engine(obj, None)["spec"]
    if spec != live["spec"] and (problems := validate(spec)):
        raise invalid(obj, problems, Exit.USAGE)
    return obj


async def _of_file(session: Session, obj: Object) -> Requested:
    """Return the file's object as an apply would store it. Raises Failure."""
    meta = obj["metadata"]
    check_namespace(obj)
    try:
        live = await session.client.get(MODEL_DEPLOYMENTS, meta["name"], meta["namespace"])
    except (ApiError, Unreachable) as error:
        if not (isinstance(error, ApiError) and error.not_found):
            raise of(error, f"read ModelDeployment '{meta['name']}'") from error
        return Requested(None, valid_new(obj))
    return _applied(obj, live)


def _applied(obj: Object, live: Object) -> Requested:
    """Return the live object as it is stored after `kubectl apply` of the file's object. Raises Failure."""
    if not isinstance(obj["spec"], dict):
        raise invalid(obj, [Problem("spec", "must be an object")], Exit.USAGE)
    _check_version(obj, live)
    after = applied(obj, live)
    spec = valid(after)["spec"]
    left = kept(obj, after, default(obj["spec"]))
    notes = (f"an apply keeps these fields, which the file does not set: {', '.join(left)}",)
    # The edit is that of the stored spec, so `after`, which has the new one, would keep its generation.
    stored = {**after, "spec": live["spec"]}
    return Requested(live, _on_kept_engine(with_spec(stored, spec), live), notes if left else ())


def _check_version(obj: Object, live: Object) -> None:
    """Raise Failure if the file has another uid or resourceVersion than the stored object, as kubectl does.

    `kubectl get -o yaml` writes both fields.
    """
    for field in ("uid", "resourceVersion"):
        stated = obj["metadata"].get(field)
        if stated not in (None, NO_UID, live["metadata"].get(field)):
            raise Failure(
                f"an apply of the file is a conflict: ModelDeployment '{obj['metadata']['name']}' has another "
                f"metadata.{field} than the file by now; remove metadata.{field} from the file to edit today's model",
                Exit.CHANGED,
            )


def check_namespace(obj: Object) -> None:
    """Raise Failure if the option -n names another namespace than the file, as kubectl does."""
    context = click.get_current_context(silent=True)
    namespace = context.params.get("namespace") if context else None
    meta = obj["metadata"]
    if namespace and meta["namespace"] != namespace:
        raise Failure(
            f"ModelDeployment '{meta['name']}' of the file is in namespace {meta['namespace']}, not in {namespace}: "
            "correct one of the two",
            Exit.USAGE,
        )


async def registered_configs(session: Session) -> list[Object]:
    """Return the InferenceProviderConfigs. Raises Failure."""
    try:
        configs, _ = await session.client.list(PROVIDER_CONFIGS)
    except (ApiError, Unreachable) as error:
        raise of(error, "list InferenceProviderConfigs") from error
    return configs


async def provider_after(session: Session, obj: Object) -> tuple[str, Object, list[str]]:
    """Return the provider that core and the selector will give the object, the object on its engine, and notes.

    Raises:
        Failure: No provider is selected, its engine is unknown, or the providers cannot be listed.
    """
    named = LiveModelDeployment(obj).requested_provider
    try:
        configs = await registered_configs(session)
    except Failure as failure:
        fallback = named or provider_of(obj)
        if failure.exit_code != Exit.FORBIDDEN or not fallback:
            raise
        unknown = f"{failure.message}: whether another provider is selected is unknown"
        return str(fallback), on_engine(obj, None), [unknown]
    if named:
        engines = {offered.name: offered.engines for offered in map(provider, configs)}
        kept, notes = _named_provider(obj, named, sorted(engines))
        return kept, on_engine_of(obj, kept, engines), notes
    chosen, engine = _selected_provider(obj, configs)
    return chosen, on_engine(obj, engine), []


def _selected_provider(obj: Object, configs: Sequence[Object]) -> tuple[str, str | None]:
    """Return the provider and the engine that the selector will give the object. Raise Failure if it gives none."""
    packages, _ = as_running_all(installed(), configs)
    registered = [provider(config) for config in configs]
    after = foreseen(obj, registered, packages)
    if chosen := selected_provider(after):
        return chosen, effective_engine(after)
    # The status after the prediction names a provider that keeps the model, which a new model does not have.
    reason = pending(after) if obj.get("status") else selected(obj, registered, packages).text
    raise Failure(
        f"no provider is selected for ModelDeployment '{obj['metadata']['name']}': "
        f"{reason or 'the selector gives no reason'}"
    )


def _named_provider(obj: Object, named: str, registered: Sequence[str]) -> tuple[str, list[str]]:
    """Return the named provider, or the current one with a note if the named one is not registered."""
    if named in registered:
        return named, []
    unregistered = (
        f"ModelDeployment '{obj['metadata']['name']}' names provider {named}, which is not registered "
        f"(registered: {', '.join(registered) or 'none'})"
    )
    current = provider_of(obj)
    if not current:
        raise Failure(f"{unregistered}: install it, or name another one")
    return current, [f"{unregistered}: provider {current} keeps the model, and applies this edit"]
