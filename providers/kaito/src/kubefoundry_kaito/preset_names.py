"""Names of KAITO's presets."""

from __future__ import annotations

from typing import Final

BUILT_IN: Final = {
    id_.lower(): name
    for id_, name in {
        "deepseek-ai/DeepSeek-R1-0528": "deepseek-r1-0528",
        "deepseek-ai/DeepSeek-R1-Distill-Llama-8B": "deepseek-r1-distill-llama-8b",
        "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B": "deepseek-r1-distill-qwen-14b",
        "deepseek-ai/DeepSeek-V3-0324": "deepseek-v3-0324",
        "meta-llama/Llama-3.1-8B-Instruct": "llama-3.1-8b-instruct",
        "meta-llama/Llama-3.3-70B-Instruct": "llama-3.3-70b-instruct",
        "microsoft/Phi-3-medium-128k-instruct": "phi-3-medium-128k-instruct",
        "microsoft/Phi-3-medium-4k-instruct": "phi-3-medium-4k-instruct",
        "microsoft/Phi-3-mini-128k-instruct": "phi-3-mini-128k-instruct",
        "microsoft/Phi-3-mini-4k-instruct": "phi-3-mini-4k-instruct",
        "microsoft/Phi-3.5-mini-instruct": "phi-3.5-mini-instruct",
        "microsoft/Phi-4-mini-instruct": "phi-4-mini-instruct",
        "microsoft/phi-4": "phi-4",
        "mistralai/Mistral-7B-Instruct-v0.3": "mistral-7b-instruct",
        "mistralai/Mistral-7B-v0.3": "mistral-7b",
        "openai/gpt-oss-120b": "gpt-oss-120b",
        "openai/gpt-oss-20b": "gpt-oss-20b",
        "Qwen/Qwen2.5-Coder-32B-Instruct": "qwen2.5-coder-32b-instruct",
        "Qwen/Qwen2.5-Coder-7B-Instruct": "qwen2.5-coder-7b-instruct",
    }.items()
}
"""Hugging Face id, in lower case -> built-in preset (KAITO presets/workspace/models/*.yaml, 0.5 to 0.12).

KAITO's list changes with each release and is not in its CRD. Any other built-in preset can be requested by its own
name, as a `model.id` without a slash. KAITO's webhook then refuses a preset that does not exist.
"""


def preset_name(model_id: str, *, any_model: bool) -> str | None:
    """Return `inference.preset.name` for a Hugging Face id or a preset's own name; None if KAITO has no such preset.

    Args:
        model_id: The Hugging Face id or the preset's name.
        any_model: Whether this KAITO accepts every `org/model` (0.9 and later). Such a KAITO lists its curated
            models under their Hugging Face ids. The only short name that it accepts is the last part of such an id,
            so other short names are not used.
    """
    if "/" not in model_id:
        return model_id.lower()
    name = BUILT_IN.get(model_id.lower())
    if not any_model:
        return name
    return name if name == model_id.lower().rsplit("/", 1)[-1] else model_id


def is_built_in(model_id: str) -> bool:
    """Check whether KAITO itself ships and tests the model as a preset, unlike an arbitrary Hugging Face model."""
    return "/" not in model_id or model_id.lower() in BUILT_IN
