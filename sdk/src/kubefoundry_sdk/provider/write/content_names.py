"""Helpers that are named after their content, so that another content is another object.

An upstream's admission reads the helper that the main object names. Under one name forever it would judge an edit
by the content of before, and writing the new content first would change what a serving object uses. Under a name of
its own the new content can be there, be tried, and go again, while the old object keeps the helper it has.

A provider renders such a helper under a plain name (`NAME-inference-config`), and says at which paths of the main
object that name stands (`Provider.named_by_content`). Plans compare plain names; the last step gives the real ones.
What was written under a plain name by an earlier provider keeps it until its content changes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kubefoundry_sdk.api.equality import same
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.provider.contract import Rendered
from kubefoundry_sdk.provider.write import documents, manifest
from kubefoundry_sdk.provider.write.helpers import Mark, mark

DIGITS: Final = 10
"""Hexadecimal digits of the digest in a name: what one deployment has had are never so many that two collide."""


def in_use(paths: Sequence[str], rendered: Object, standing: Object | None) -> dict[str, str]:
    """Of each plain name in a rendered main object the name that the standing one has in its place."""
    found = {}
    for path in paths:
        plain, name = documents.at(rendered, path.split(".")), documents.at(standing, path.split("."))
        if isinstance(plain, str) and isinstance(name, str):
            found[plain] = name
    return found


def plain(paths: Sequence[str], main: Object, used: Mapping[str, str]) -> Object:
    """A main object that names its helpers by the names in `used`, with the plain ones."""
    return _renamed(paths, main, {name: plain for plain, name in used.items()})


def settled(
    paths: Sequence[str],
    wanted: Rendered,
    used: Mapping[str, str],
    standing: Mapping[Mark, Object],
    untouched: Collection[Mark],
) -> Rendered:
    """`wanted`, which has plain names, with the real ones.

    used: as `in_use`. standing: live helpers by kind and plain name. untouched: helpers, by the same, whose content
    the user has not changed: they keep the name they have, whatever somebody did to them.
    """
    named = {documents.at(wanted.main, path.split(".")) for path in paths}
    real = {}
    helpers = []
    for helper in wanted.helpers:
        meta = helper["metadata"]
        if meta["name"] in named:
            name = used.get(meta["name"])
            live = standing.get(mark(helper))
            if name is None or not (mark(helper) in untouched or (live and _has_content_of(live, helper))):
                name = f"{meta['name']}-{_digest(helper)}"
            real[meta["name"]] = name
            helper = {**helper, "metadata": {**meta, "name": name}}
        helpers.append(helper)
    return Rendered(_renamed(paths, wanted.main, real), tuple(helpers), wanted.notes, wanted.image)


def _has_content_of(live: Object, helper: Object) -> bool:
    """Whether what was applied to a live helper is that content; of one without record, whether it has it."""
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
