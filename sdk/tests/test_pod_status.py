"""The line of a termination message that names the cause, and the container that is being created."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest

from kubefoundry_sdk._api.pod_status import LINE, creating, root_cause

CAUSES = [
    "ValueError: Total number of attention heads (32) must be divisible by tensor parallel size (3).",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
    "OSError: org/model is not a local folder and is not a valid model identifier",
    "huggingface_hub.errors.GatedRepoError: 403 Client Error. (Request ID: Root=1-6; x)",
    "AssertionError",
    "Value error, Invalid repository ID or local directory specified: 'x'.",
]
PREFIXES = ["", "(EngineCore_DP0 pid=88) ", "(EngineCore_DP0 pid=88) ERROR 11-25 12:00:00 [core.py:708] "]
FRAMES = [
    "(APIServer pid=1) Traceback (most recent call last):",
    '(APIServer pid=1)   File "/usr/local/bin/vllm", line 8, in <module>',
    '    raise RuntimeError("Engine core initialization failed. "',
    "    sys.exit(main())",
]
FOLLOW_UPS = [
    "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. "
    "Failed core proc(s): {'EngineCore_DP0': 1}",
    "RuntimeError: Engine process failed to start. See stack trace for the root cause.",
    "Exception: WorkerProc initialization failed due to an exception in a background process. "
    "See stack trace for root cause.",
    "RuntimeError: Rank 0 scheduler died during initialization (exit code: -9).",
    "EOFError",
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
    "RuntimeError: Executor worker returned error",
    "/usr/lib/python3.12/multiprocessing/resource_tracker.py:279: UserWarning: resource_tracker: There appear to "
    "be 1 leaked shared_memory objects to clean up at shutdown",
    "  warnings.warn('resource_tracker: There appear to be %d '",
    "[rank0]:[W1125 ProcessGroupNCCL.cpp:1476] Warning: destroy_process_group() was not called",
]


@pytest.mark.parametrize(("cause", "prefix"), list(product(CAUSES, PREFIXES)))
def test_root_cause_is_found_among_follow_ups(cause: str, prefix: str) -> None:
    choices = random.Random(cause + prefix)
    line = prefix + cause
    for number in range(20):
        before = choices.choices(FRAMES + FOLLOW_UPS, k=number % 4)
        after = choices.choices(FRAMES + FOLLOW_UPS, k=number % 7)

        assert root_cause("\n".join([*before, line, *after])) == line


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param([], "", id="nothing"),
        pytest.param(["", " \t"], "", id="blank lines"),
        pytest.param(["loading", "ready soon", ""], "ready soon", id="no error at all"),
        pytest.param([FOLLOW_UPS[0], FOLLOW_UPS[7], FOLLOW_UPS[8]], FOLLOW_UPS[0], id="only a follow-up error"),
        pytest.param([FOLLOW_UPS[7], FOLLOW_UPS[8]], FOLLOW_UPS[8].strip(), id="only noise"),
        pytest.param(["main: error: unable to load model", "srv: cleaning up"], "main: error: unable to load model",
                     id="llama.cpp"),
        pytest.param(
            ["llama_model_load: error loading model: unable to allocate CUDA0 buffer",
             "llama_model_load_from_file_impl: failed to load model",
             "srv    load_model: failed to load model, '/m.gguf'",
             "srv    operator(): operator(): cleaning up before exit...",
             "main: exiting due to model loading error"],
            "llama_model_load: error loading model: unable to allocate CUDA0 buffer",
            id="llama.cpp without memory",
        ),
        pytest.param(
            ["gguf_init_from_file: failed to open GGUF file '/m.gguf'",
             "llama_model_load: error loading model: llama_model_loader: failed to load model from /m.gguf",
             "common_init_from_params: failed to load model '/m.gguf'",
             "main: exiting due to model loading error"],
            "llama_model_load: error loading model: llama_model_loader: failed to load model from /m.gguf",
            id="llama.cpp without a file",
        ),
        pytest.param(["usage: vllm [-h]", "vllm: error: unrecognized arguments: --x", "INFO bye"],
                     "vllm: error: unrecognized arguments: --x", id="arguments"),
        pytest.param(["ValueError: first", "KeyError: 'second'"], "KeyError: 'second'", id="two exceptions"),
        pytest.param(
            ["pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig",
             "  Value error, Invalid repository ID [type=value_error]",
             "    For further information visit https://errors.pydantic.dev/2.12/v/value_error"],
            "Value error, Invalid repository ID [type=value_error]",
            id="pydantic",
        ),
    ],
)  # fmt: skip
def test_root_cause_of_a_termination_message(lines: list[str], expected: str) -> None:
    assert root_cause("\n".join(lines)) == expected


def test_root_cause_is_bounded() -> None:
    received = root_cause(f"ValueError: {'x' * 4000}\nEOFError")

    assert received.startswith("ValueError: x") and len(received) == LINE


def waiting(name: str, reason: str) -> dict[str, Any]:
    return {"name": name, "state": {"waiting": {"reason": reason}}}


def running(name: str) -> dict[str, Any]:
    return {"name": name, "state": {"running": {}}}


DONE = {"name": "init", "state": {"terminated": {"exitCode": 0}}}


@pytest.mark.parametrize(
    ("init", "main", "expected"),
    [
        pytest.param([], [waiting("main", "ContainerCreating")], "main", id="only container"),
        pytest.param([], [running("a"), waiting("b", "ContainerCreating")], "b", id="second container"),
        pytest.param([waiting("init", "PodInitializing")], [waiting("main", "PodInitializing")], "init",
                     id="volumes before the init container"),
        pytest.param([running("init")], [waiting("main", "PodInitializing")], None, id="init container runs"),
        pytest.param([DONE], [waiting("main", "PodInitializing")], "main", id="init container is done"),
        pytest.param([DONE, waiting("i2", "PodInitializing")], [waiting("main", "PodInitializing")], "i2",
                     id="second init container"),
        pytest.param([], [running("main")], None, id="runs"),
        pytest.param([], [waiting("main", "ErrImagePull")], None, id="another reason"),
        pytest.param([], [], None, id="no status yet"),
    ],
)  # fmt: skip
def test_container_that_is_being_created(init: list[Any], main: list[Any], expected: str | None) -> None:
    container = creating({"initContainerStatuses": init, "containerStatuses": main})

    assert (container or {}).get("name") == expected
