"""What llama-stack asks first: which API, under which type, configured and loaded from where."""

from llama_stack_api import Api, InlineProviderSpec


def get_provider_spec() -> InlineProviderSpec:
    return InlineProviderSpec(
        api=Api.safety,
        provider_type="inline::acme-guard",
        config_class="acme_guard.config.Config",
        module="acme_guard",
    )
