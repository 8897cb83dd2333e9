"""Providers that hang, crash, collide, pry or lie, each with the code that refuses it and the provider to blame.

They are as their install containers leave them. Each has a valid provider, `acme_good`, beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from support.provider_images import Files, provider_files

SECRET: Final = "Tr0ub4dor&3-correct/horse+battery"
SECRETS: Final = {
    "KEY": SECRET,
    "PIN": "7",
    "LINES": f"-----BEGIN\n{SECRET[::-1]}abcdef\nzyxwvuts9876\n-----END",
}
"""Values of variables that come from a Secret, as the operator reports."""


@dataclass(frozen=True, slots=True)
class Hostile:
    """A hostile provider.

    Attributes:
        files: Files of its wheel, besides those of a valid provider `acme_echo`.
        code: The code of the refusal, empty if the provider is harmless.
        words: Parts of the message.
        entry: Changed fields of its entry of run.yaml.
        second: Files of another provider, `acme_other` with the id `other`, which is loaded before it.
        second_entry: Changed fields of that provider's entry.
        secret: Variables that come from a Secret, as the operator reports.
        culprit: The provider that the message names.
        package: Name of its wheel.
        asked: Further input of preflight.
    """

    files: Files
    code: str
    words: tuple[str, ...] = ()
    entry: Mapping[str, Any] = field(default_factory=dict)
    second: Files | None = None
    second_entry: Mapping[str, Any] = field(default_factory=dict)
    secret: tuple[str, ...] = ()
    culprit: str = "echo"
    package: str = "acme-echo"
    asked: Mapping[str, Any] = field(default_factory=dict)


def module(text: str, *, late: bool = False) -> dict[str, str | bytes]:
    """Return files with code that runs when `acme_echo.provider` is imported, before or after its own code."""
    own = str(provider_files("acme_echo", "remote::acme-echo")["acme_echo/provider.py"])
    return {"acme_echo/provider.py": f"{own}\n{text}\n" if late else f"{text}\n{own}"}


def spec(**fields: str) -> dict[str, str | bytes]:
    """Return a provider whose spec has other fields, each as Python text."""
    values = {
        "adapter_type": '"x"',
        "api": '"inference"',
        "provider_type": '"remote::acme-echo"',
        "config_class": '"acme_echo.Config"',
        "module": '"acme_echo"',
        **fields,
    }
    text = ", ".join(f"{name}={value}" for name, value in values.items())
    return {
        "acme_echo/provider.py": "from llama_stack_api import RemoteProviderSpec\ndef get_provider_spec():\n"
        f"    return RemoteProviderSpec({text})\n"
    }


def says(text: str) -> dict[str, str | bytes]:
    """Return a provider whose import fails with this text: a Python expression in which `key` is the secret."""
    return module(f"import os, base64, urllib.parse\nkey = os.environ['KEY']\nraise ValueError({text})")


def other(kind: str) -> dict[str, str | bytes]:
    """Return a second provider of this type."""
    return provider_files("acme_other", kind)


SESSION: Final = (
    "import os, time\nreader, writer = os.pipe()\nif os.fork() == 0:\n"
    "    os.setsid()\n    os.write(writer, b'.')\n    time.sleep(600)\nos.read(reader, 1)\n"
)
"""The parent waits until the child has left the process group, because killing the group would kill it, too."""

FORKS: Final = "import os, time\nif os.fork() == 0:\n    {}time.sleep(600)\n"
SEVERAL: Final = "from pkgutil import extend_path\n__path__ = extend_path(__path__, __name__)\n"

LOADING: Final[dict[str, Hostile]] = {
    "sleeps when it is imported": Hostile(
        module("import time; time.sleep(600)"), "TookTooLong", ("longer than 1 s",)
    ),
    "never ends its loop": Hostile(module("while True: pass"), "TookTooLong"),
    "waits for standard input forever": Hostile(
        module("import threading; threading.Event().wait()"), "TookTooLong"
    ),
    "ignores signals and sleeps": Hostile(
        module(
            "import signal, time\nfor one in range(1, 32):\n    try: signal.signal(one, signal.SIG_IGN)\n"
            "    except OSError: pass\ntime.sleep(600)"
        ),
        "TookTooLong",
    ),
    "joins a thread that never ends": Hostile(
        module("import threading\nt = threading.Thread(target=threading.Event().wait)\nt.start()\nt.join()"),
        "TookTooLong",
    ),
    "sleeps in get_provider_spec": Hostile(
        {"acme_echo/provider.py": "import time\ndef get_provider_spec(): time.sleep(600)\n"}, "TookTooLong"
    ),
    "sleeps in its config class": Hostile(
        {
            "acme_echo/__init__.py": "import time\nclass Config:\n    def __init__(self, **v): time.sleep(600)\n"
            "async def get_adapter_impl(config, deps): ...\n"
        },
        "TookTooLong",
    ),
    "leaves a process that keeps the pipe": Hostile(module(FORKS.format("")), ""),
    "leaves a process in a session of its own": Hostile(module(SESSION), ""),
    "forks and ends the first": Hostile(
        module("import os, time\nif os.fork(): os._exit(0)\ntime.sleep(600)"), "ProbeDied", ("exit code 0",)
    ),
    "forks twice": Hostile(module("import os\nos.fork(); os.fork()"), ""),
    "kills its parent": Hostile(
        module("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nimport time; time.sleep(600)"),
        "ProbeDied",
        ("SIGKILL",),
    ),
    "kills its group": Hostile(
        module("import os, signal\nos.killpg(0, signal.SIGKILL)"), "ProbeDied", ("SIGKILL",)
    ),
    "aborts": Hostile(module("import os\nos.abort()"), "ProbeDied", ("SIGABRT",)),
    "ends by a real-time signal": Hostile(module("import os\nos.kill(os.getpid(), 40)"), "ProbeDied"),
    "exits with 0": Hostile(module("import os\nos._exit(0)"), "ProbeDied", ("exit code 0",)),
    "raises KeyboardInterrupt": Hostile(
        module("raise KeyboardInterrupt"), "ImportFailed", ("KeyboardInterrupt",)
    ),
    "raises what is no Exception": Hostile(
        module("class Odd(BaseException): pass\nraise Odd('odd')"), "ImportFailed", ("Odd: odd",)
    ),
    "raises an error without text": Hostile(
        module("class Odd(Exception):\n    def __str__(self): raise RuntimeError\nraise Odd"),
        "ImportFailed",
        ("Odd", "cannot be read"),
    ),
    "recurses without end": Hostile(module("def f(): f()\nf()"), "ImportFailed", ("RecursionError",)),
    "fails with a surrogate": Hostile(module("raise ValueError('\\udc80')"), "ImportFailed"),
    "fails with a megabyte of text": Hostile(module("raise ValueError('x' * 1_000_000)"), "ImportFailed"),
    "exits in its config class": Hostile(
        {
            "acme_echo/__init__.py": "class Config:\n    def __init__(self, **v): raise SystemExit(3)\n"
            "async def get_adapter_impl(config, deps): ...\n"
        },
        "ConfigRejected",
    ),
    "closes every descriptor": Hostile(module("import os\nos.closerange(3, 256)"), "ProbeDied"),
    "writes into its checks' answers": Hostile(
        module(
            "import os\nfor one in range(3, 20):\n    try: os.write(one, b'nonsense\\n[1]\\n')\n"
            "    except OSError: pass"
        ),
        "",
    ),
    "answers in its own favour": Hostile(
        module(
            'import os\nfor one in range(3, 20):\n    try: os.write(one, b\'{"found": {"type": 1}}\\n\')\n'
            "    except OSError: pass\nos._exit(0)"
        ),
        "ProbeDied",
    ),
    "prints without end while it loads": Hostile(module("print('x' * 100000)"), ""),
    "changes the working folder": Hostile(module("import os\nos.chdir('/')"), ""),
    "unsets every variable": Hostile(module("import os\nos.environ.clear()"), ""),
    "has a spec with a type that is no text": Hostile(spec(provider_type="[1]"), "SpecInvalid"),
    "has a config class that is no class": Hostile(
        spec(config_class='"acme_echo.provider"'), "ConfigRejected"
    ),
    "has a config class without a module": Hostile(spec(config_class='"Config"'), "ConfigClass"),
    "names a module that it does not have": Hostile(
        spec(module='"acme_gone"'), "ImportFailed", ("acme_gone",)
    ),
    "implements another API": Hostile(spec(api='"safety"'), "ApiDiffers", ("safety", "inference")),
    "lists one spec, of another API": Hostile(
        {
            "acme_echo/provider.py": "from llama_stack_api import RemoteProviderSpec\ndef get_provider_spec():\n"
            '    return [RemoteProviderSpec(adapter_type="x", api="safety", provider_type="remote::acme-echo", '
            'config_class="acme_echo.Config", module="acme_echo")]\n'
        },
        "ApiDiffers",
    ),
}

TYPES: Final[dict[str, Hostile]] = {
    "has the type of another provider": Hostile(
        {},
        "ProviderTypeTaken",
        ("'echo'", "'other'", "images/other:1"),
        second=other("remote::acme-echo"),
        second_entry={"provider_type": "remote::acme-echo"},
    ),
    "has it only at run time": Hostile(
        spec(provider_type='"remote::acme-other"'),
        "ProviderTypeTaken",
        ("'other'", "remote::acme-other"),
        second=other("remote::acme-other"),
        second_entry={"provider_type": "remote::acme-other"},
    ),
    "has it as inline": Hostile(
        {},
        "ProviderTypeTaken",
        ("inline::acme-echo",),
        second=other("inline::acme-echo"),
        second_entry={"provider_type": "inline::acme-echo"},
    ),
    "has a type of llama-stack": Hostile(
        spec(provider_type='"remote::vllm"'),
        "ProviderTypeTaken",
        ("llama-stack itself", "remote::vllm"),
        entry={"provider_type": "remote::vllm"},
    ),
    "has a type of llama-stack only at run time": Hostile(
        spec(provider_type='"remote::vllm"'), "ProviderTypeTaken", ("llama-stack itself",)
    ),
    "has a type of llama-stack as inline": Hostile(
        {}, "ProviderTypeTaken", ("remote::vllm",), entry={"provider_type": "inline::vllm"}
    ),
    "is used twice": Hostile({}, "", second={}, second_entry={"module": "acme_echo"}),
}

SHADOWING: Final[dict[str, Hostile]] = {
    **{
        f"brings {path}": Hostile(
            {path: "raise SystemExit('it ran')\n"}, "ModuleShadowed", (path.split("/")[0].split(".")[0],)
        )
        for path in (
            *("json.py", "yaml/__init__.py", "pydantic/__init__.py", "sitecustomize.py", "usercustomize.py"),
            *("argparse.py", "asyncio/__init__.py", "typing.cpython-313-x86_64-linux-gnu.so", "os.pyc"),
            *("llama_stack_api.py", "llama_stack/__init__.py", "llama_stack/core/stack.py", "single.py"),
        )
    },
    "brings a part of a package of several places": Hostile({"several/mine.py": ""}, ""),
    "brings the same part of it": Hostile({"several/theirs.py": ""}, "ModuleShadowed", ("several/theirs",)),
    "brings a package that says it has several places": Hostile(
        {"declared/__init__.py": SEVERAL, "declared/mine.py": ""}, ""
    ),
    "brings tests": Hostile({"tests/__init__.py": ""}, ""),
    "brings another version of a package": Hostile({"single.py": ""}, "", package="single"),
    "breaks llama-stack by a package of its name": Hostile(
        {"single.py": "raise ImportError('not this one')"},
        "ServerBroken",
        ("not this one",),
        package="single",
    ),
    "hangs llama-stack by a package of its name": Hostile(
        {"single.py": "import os; os._exit(4)"}, "ServerBroken", ("exit code 4",), package="single"
    ),
}

PRYING: Final[dict[str, Hostile]] = {
    f"tells a secret {how}": Hostile(
        says(text), "ImportFailed", entry={"config": {"key": "${env.KEY}"}}, secret=("KEY",)
    )
    for how, text in {
        "as it is": "key",
        "quoted": "repr(key)",
        "in lower case": "key.lower()",
        "in upper case": "key.upper()",
        "swapped": "key.swapcase()",
        "in base64": "base64.b64encode(key.encode())",
        "in base64 behind a name": "base64.b64encode(b'user:' + key.encode()).decode()",
        "in base64 for addresses": "base64.urlsafe_b64encode(b'me:' + key.encode() + b'@')",
        "as part of an address": "'https://me:' + urllib.parse.quote(key, safe='') + '@host/'",
        "in two lines": "key[:11] + '\\n' + key[11:]",
        "cut": "key[:14] + '...'",
        "with its middle left out": "key[:10] + '...' + key[-9:]",
        "in JSON": "__import__('json').dumps({'key': key})",
        "in a chain of errors": "ValueError(RuntimeError(key))",
        "in a long text": "'x' * 3000 + key + 'y' * 3000",
    }.items()
} | {
    "tells a secret that is not named in its config": Hostile(says("key"), "ImportFailed", secret=("KEY",)),
    "tells a secret of several lines": Hostile(
        module("import os\nraise ValueError(os.environ['LINES'].splitlines()[1])"),
        "ImportFailed",
        secret=("LINES",),
    ),
    "tells a secret from its spec": Hostile(
        {"acme_echo/provider.py": "import os\ndef get_provider_spec(): raise KeyError(os.environ['KEY'])\n"},
        "SpecRaised",
        secret=("KEY",),
    ),
    "tells a secret as its type": Hostile(
        spec(provider_type='__import__("os").environ["KEY"]'), "", secret=("KEY",)
    ),
    "tells a secret as the name of its error": Hostile(
        module("import os\nraise type(os.environ['KEY'], (Exception,), {})('no')"),
        "ImportFailed",
        secret=("KEY",),
    ),
    "tells a secret as a field of its config": Hostile(
        {
            "acme_echo/__init__.py": "class Problem(Exception):\n    def errors(self):\n        return "
            "[{'loc': (str(self),), 'type': 'missing', 'msg': str(self).lower()}]\n"
            "class Config:\n    def __init__(self, key): raise Problem(key)\n"
            "async def get_adapter_impl(config, deps): ...\n"
        },
        "ConfigRejected",
        entry={"config": {"key": "${env.KEY}"}},
        secret=("KEY",),
    ),
    "may tell a secret that is too short to find": Hostile(
        module("raise ValueError('something else')"), "ImportFailed", ("too short", "log"), secret=("PIN",)
    ),
    "may tell a secret that is mounted": Hostile(
        module("raise ValueError('something else')"),
        "ImportFailed",
        ("a Secret is mounted", "log"),
        asked={"unknown": "a Secret is mounted"},
    ),
}
HOSTILE: Final = {**LOADING, **TYPES, **SHADOWING, **PRYING}
