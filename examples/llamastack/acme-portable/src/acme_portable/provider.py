"""What llama-stack asks first: which API, under which type, configured and loaded from where."""

from acme_portable.names import Api, RemoteProviderSpec


def get_provider_spec() -> RemoteProviderSpec:
    return RemoteProviderSpec(
        api=Api.inference,
        adapter_type="acme-portable",
        provider_type="remote::acme-portable",
        config_class="acme_portable.config.Config",
        module="acme_portable",
    )
