"""A provider without code: `kubefoundry-provider-functions --mapping FILE` (docs/mapping.md)."""
