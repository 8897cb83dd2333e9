"""An engine's command line, from fields of the spec and `engine.args`, and how an engine is split over GPUs."""

from __future__ import annotations

from kubefoundry_sdk._api.engine_args import (
    Parallel,
    StatedSizes,
    for_command_line,
    json_value,
    parallel,
    stated_sizes,
    states_tensor_parallelism,
)
from kubefoundry_sdk._api.engine_args import typed as typed_value
from kubefoundry_sdk._api.extra_args import reserved
from kubefoundry_sdk._api.flag_names import DATA as DATA_PARALLEL
from kubefoundry_sdk._api.flag_names import PIPELINE as PIPELINE_PARALLEL
from kubefoundry_sdk._api.flag_names import TENSOR as TENSOR_PARALLEL
from kubefoundry_sdk._api.flag_names import dashed, is_dotted
from kubefoundry_sdk._api.served_apis import served_apis
from kubefoundry_sdk._provider.command_line import (
    Derived,
    all_addresses,
    argv,
    contradictions,
    is_switch,
    literal,
    repetitions,
)
from kubefoundry_sdk._provider.model_location import (
    LOAD_FORMAT,
    STREAMER,
    loader,
    location_problems,
    model_location,
)

__all__ = [
    "DATA_PARALLEL",
    "LOAD_FORMAT",
    "PIPELINE_PARALLEL",
    "STREAMER",
    "TENSOR_PARALLEL",
    "Derived",
    "Parallel",
    "StatedSizes",
    "all_addresses",
    "argv",
    "contradictions",
    "dashed",
    "for_command_line",
    "is_dotted",
    "is_switch",
    "json_value",
    "literal",
    "loader",
    "location_problems",
    "model_location",
    "parallel",
    "repetitions",
    "reserved",
    "served_apis",
    "stated_sizes",
    "states_tensor_parallelism",
    "typed_value",
]
