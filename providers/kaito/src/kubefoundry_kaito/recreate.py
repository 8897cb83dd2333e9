"""Changes that a Workspace cannot take in place: nearly all (sources §1.3, §1.4).

KAITO refuses changes of `resource` and `inference.preset`, stores those of `inference.template` without rolling them
out, and reads the ConfigMap only when its pod starts.
"""

from __future__ import annotations

from typing import Final

from kubefoundry_sdk import Rendered

SECTIONS: Final = ("resource", "inference")


def recreate(old: Rendered, new: Rendered) -> str | None:
    """Return why KAITO cannot make the change: a running Workspace takes only changes of labels and annotations."""
    changed = [section for section in SECTIONS if old.main.get(section) != new.main.get(section)]
    if [helper.get("data") for helper in old.helpers] != [helper.get("data") for helper in new.helpers]:
        changed.append("the inference config")
    return f"KAITO does not roll out a change of {', '.join(changed)}" if changed else None
