"""What llama-stack asks first: which API, under which type, configured and loaded from where."""

from llama_stack_api import Api, RemoteProviderSpec


def get_provider_spec() -> RemoteProviderSpec:
    return RemoteProviderSpec(
        api=Api.inference,
        adapter_type="acme-shout",
        provider_type="remote::acme-shout",
        config_class="acme_shout.config.Config",
        module="acme_shout",
    )
