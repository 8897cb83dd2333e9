"""Names helpers after their content, so that new content is a new object.

An upstream's admission reads the helper that the main object names. If the name were fixed, admission would judge an
edit by the previous content, or the new content would have to be written first, into a helper that serves. Under a
new name, the new content can be created, tried and deleted again while the old object keeps its helper.

A provider renders such a helper under a plain name (`NAME-inference-config`), and declares the paths of the main
object that hold that name (`Provider.named_by_content`). Plans compare plain names, and replace them in the last
step. A helper that an earlier provider wrote under its plain name keeps it until its content changes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kubefoundry_sdk._api.equality import same
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._provider.contract import Rendered
from kubefoundry_sdk._provider.write import documents, manifest
from kubefoundry_sdk._provider.write.helpers import Mark, mark

DIGITS: Final = 10
"""Hexadecimal digits of the digest in a name: one deployment never has enough versions for two to collide."""


def names_in_use(paths: Sequence[str], rendered: Object, live: Object | None) -> dict[str, str]:
    """Return the name in the live main object for each plain name in a rendered one."""
    live_names = {}
    for path in paths:
        plain, name = documents.at(rendered, path.split(".")), documents.at(live, path.split("."))
        if isinstance(plain, str) and isinstance(name, str):
            live_names[plain] = name
    return live_names


def plain(paths: Sequence[str], main: Object, used: Mapping[str, str]) -> Object:
    """Return a main object with the names in `used` replaced by the plain ones."""
    return _renamed(paths, main, {name: plain for plain, name in used.items()})


def with_cluster_names(
    paths: Sequence[str],
    desired: Rendered,
    used: Mapping[str, str],
    live_helpers: Mapping[Mark, Object],
    untouched: Collection[Mark],
) -> Rendered:
    """Return the render with the real names in place of the plain ones.

    `paths` are those of names in the main object, `used` is the result of `names_in_use`. The helpers in `untouched`
    have content that the user has not changed. They keep their names, even if others changed them.
    """
    values = (documents.at(desired.main, path.split(".")) for path in paths)
    named = {name for name in values if isinstance(name, str)}
    real = {}
    helpers = []
    for helper in desired.helpers:
        meta = helper["metadata"]
        if meta["name"] in named:
            name = used.get(meta["name"])
            live = live_helpers.get(mark(helper))
            if name is None or not (mark(helper) in untouched or (live and _has_content_of(live, helper))):
                name = f"{meta['name']}-{_digest(helper)}"
            real[meta["name"]] = name
            helper = {**helper, "metadata": {**meta, "name": name}}
        helpers.append(helper)
    return Rendered(_renamed(paths, desired.main, real), tuple(helpers), desired.notes, desired.image)


def by_content(live: Object) -> bool:
    """Check whether a live helper's name matches its content."""
    record = manifest.applied(live)
    return str(live["metadata"]["name"]).endswith(f"-{_digest(record.manifest if record else live)}")


def _has_content_of(live: Object, helper: Object) -> bool:
    """Check whether the live helper was applied with this content. Without a record, compare its live content."""
    record = manifest.applied(live)
    return same(manifest.body(record.manifest if record else live), manifest.body(helper))


def _digest(helper: Object) -> str:
    text = json.dumps(manifest.body(helper), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:DIGITS]


def _renamed(paths: Sequence[str], main: Object, names: Mapping[str, str]) -> Object:
    for path in paths:
        steps = path.split(".")
        name = documents.at(main, steps)
        if isinstance(name, str) and name in names:
            main = documents.replaced(main, steps, names[name])
    return main
