"""Building blocks of `read_back`: find the fields of a spec in a live upstream object, for `kubefoundry import`."""

from __future__ import annotations

from kubefoundry_sdk._api.foreign_yaml import Unreadable as UnreadableYaml
from kubefoundry_sdk._api.foreign_yaml import decode as decode_yaml
from kubefoundry_sdk._provider.read_back import amounts, extra, flags, from_flags, pod_fields, text

__all__ = ["UnreadableYaml", "amounts", "decode_yaml", "extra", "flags", "from_flags", "pod_fields", "text"]
