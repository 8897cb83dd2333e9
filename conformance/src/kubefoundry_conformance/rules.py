"""Rules of the contract with stable ids (contract §9). Each check names one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

CONTRACT: Final = "docs/contract.md#9-rules"
"""Target of the links in a report."""

GROUPS: Final = {
    "REG": "Registration",
    "PRB": "Probing the upstream CRD",
    "SUP": "What a provider refuses",
    "REN": "Rendering",
    "WRI": "Writing upstream objects",
    "OBS": "Observing",
    "STA": "Writing the status",
    "LEV": "Leaving",
    "PRO": "The process",
    "SEL": "Selectors",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of the contract.

    Attributes:
        id: The stable id.
        text: The rule in one sentence.
        unchecked: The reason why the kit has no check of it, empty if it has one.
    """

    id: str
    text: str
    unchecked: str = ""


RULES: Final[dict[str, Rule]] = {
    rule.id: rule
    for rule in (
        Rule(
            "REG-1", "Capabilities are applied by force; selection rules without, so an administrator's stay."
        ),
        Rule("REG-2", "A heartbeat changes `status.lastHeartbeat` three times in `--heartbeat-timeout`."),
        Rule(
            "REG-3", "`status.ready` follows the upstream CRD: false without it, true once it is supported."
        ),
        Rule("REG-4", "`UpstreamReady` has a reason and a message that name what is missing."),
        Rule("REG-5", "Selection rules compile: `RulesValid` is not False."),
        Rule("REG-6", "Only the leader reports."),
        Rule(
            "PRB-1",
            "`probe` decides by fields: labels, annotations and descriptions of a CRD change nothing.",
        ),
        Rule("PRB-2", "`probe` chooses the stored version where it can write that one."),
        Rule("PRB-3", "A field that a minimal spec does not need may be absent from the CRD: it degrades."),
        Rule("PRB-4", "A CRD that makes no sense is unsupported, never an exception."),
        Rule("SUP-1", "Every field of the spec is honoured or refused, never dropped silently."),
        Rule("SUP-2", "`supports` takes any valid spec, a minimal one included, without an exception."),
        Rule("SUP-3", "`supports` works while the upstream CRD is not installed (`schema` is None)."),
        Rule(
            "SUP-4", "Names and labels that are derived from a long name are valid, or the name is refused."
        ),
        Rule("SUP-5", "Users' pod labels never take a rendered selector's pods away."),
        Rule("SUP-6", "Unknown overrides cause a warning, overrides of a wrong type are refused."),
        Rule("REN-1", "What is rendered fits the upstream CRD, unknown fields forbidden."),
        Rule(
            "REN-2",
            "What is rendered has the provider's kinds and the ModelDeployment's name and namespace.",
        ),
        Rule("REN-3", "Rendering is deterministic, also across restarts, and leaves its input as it was."),
        Rule(
            "REN-4",
            "Engine arguments arrive literally: no shell reads them, the kubelet expands nothing in them.",
        ),
        Rule("REN-5", "Containers state `terminationMessagePolicy: FallbackToLogsOnError`."),
        Rule("REN-6", "Secrets are referred to by name: none is rendered."),
        Rule("REN-7", "An upgrade rewrites nothing: a default image that serves is named and kept."),
        Rule("WRI-1", "Upstream objects carry owner reference, labels and the uid of their ModelDeployment."),
        Rule("WRI-2", "An object of somebody else is left as it is: `NameConflict`."),
        Rule("WRI-3", "The finalizer is there before the upstream object."),
        Rule("WRI-4", "A change of identity is tried by a dry run before the old object is deleted."),
        Rule("WRI-5", "A refused apply is `ApplyRejected`, and what serves stays `Running`."),
        Rule("WRI-6", "Drift is put back, five times in ten minutes at most."),
        Rule("WRI-7", "Paused: nothing upstream is written; the message says so."),
        Rule("WRI-8", "A dry run stores nothing and answers in the annotation."),
        Rule("WRI-9", "No object causes a stream of writes: a refused one is repeated with back-off."),
        Rule("OBS-1", "An upstream object without a status is `Pending`."),
        Rule("OBS-2", "A state that nobody has seen is `Unknown`, never an exception."),
        Rule("OBS-3", "`ScaledToZero` only once no replica is ready."),
        Rule("OBS-4", "`Running` has a ready replica."),
        Rule("OBS-5", "A model that serves while its update fails stays `Running`, and says that it failed."),
        Rule(
            "OBS-6", "An endpoint is published only while `Running`, or while a deleted object still serves."
        ),
        Rule("OBS-7", "Pods of another ModelDeployment are not taken for this one's."),
        Rule("OBS-8", "Every observation fits the status of a ModelDeployment."),
        Rule("OBS-9", "What the upstream reports is what the subject's own table of cases says."),
        Rule(
            "OBS-10",
            "`Ready` names a generation only once its own pods serve; until then, the one that serves.",
        ),
        Rule(
            "STA-1",
            "The status is applied under the own field manager, with the resourceVersion that was read.",
        ),
        Rule("STA-2", "Nothing is written where nothing differs."),
        Rule("STA-3", "A provider that is no longer chosen owns no field of the status."),
        Rule("STA-4", "`lastTransitionTime` changes only with `status`."),
        Rule("STA-5", "A transition causes one Event."),
        Rule("LEV-1", "A hand-over deletes the object, then releases the fields, then the finalizer."),
        Rule("LEV-2", "A deletion goes through while paused, with an invalid spec and without the CRD."),
        Rule("LEV-3", "A clean-up that takes too long is given up, and an Event names what is left."),
        Rule("LEV-4", "Waiting for another provider ends after the time-out."),
        Rule("LEV-5", "An acceptance counts only from the chosen provider: its field manager wrote it."),
        Rule(
            "PRO-1", "Flags, `/readyz` and `/metrics` are those of contract §6; every reconcile is counted."
        ),
        Rule("PRO-2", "The process ends within 5 seconds of SIGTERM."),
        Rule("PRO-3", "No request is refused for lack of permission, and no permission stays unused."),
        Rule("PRO-4", "The manifest permits what the provider watches: the names of its upstream operator."),
        Rule(
            "PRO-5", "A kill after any write is continued by the next start: one object, nothing left behind."
        ),
        Rule(
            "SEL-1",
            "The Lease `kubefoundry-selector` is held and renewed; while another replica has it, nothing is decided.",
        ),
        Rule(
            "SEL-2",
            "A spec is decided on only if `Validated` of its newest generation is True, or False with the reason "
            "`ProviderTooOld`.",
        ),
        Rule("SEL-3", "The same input gives the same answer: a selection is kept."),
        Rule("SEL-4", "A new value of the annotation `reselect` asks for a new choice, once."),
        Rule("SEL-5", "A provider that refuses before it has created anything is left out."),
        Rule("SEL-6", "Only providers that are registered, ready and fresh are selected."),
        Rule("SEL-7", "No provider found is a condition that says so."),
        Rule("SEL-8", "A paused ModelDeployment is left alone."),
        Rule("SEL-9", "Fields are released while the user names a provider."),
        Rule("SEL-10", "Only providers whose capabilities cover the spec are selected."),
        Rule(
            "SEL-11", "A selection of another selector is kept, and `status.selection` lets others take over."
        ),
    )
}
"""Rules by id, in the order of the groups. An id is never reused for another rule."""
