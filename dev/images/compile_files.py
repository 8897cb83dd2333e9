"""Run by the locked interpreter: compile every file of a folder in place, except those that are no Python 3.11.

    compile_files.py FOLDER

A process of its own compiles each file. In one process, the strings that earlier files left in memory would change
the bytes of later ones.
"""

import os
import py_compile
import sys
from pathlib import Path
from typing import Final, NoReturn

CORES: Final = len(os.sched_getaffinity(0))


def compile_file(folder: Path, source: Path) -> None:
    """Write the compiled file beside its source. It names the path in the image, and is never compared with it."""
    compiled = source.parent / "__pycache__" / f"{source.stem}.cpython-311.pyc"
    py_compile.compile(
        str(source),
        str(compiled),
        dfile=f"/{source.relative_to(folder)}",
        doraise=True,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )


def main(folder: Path) -> None:
    """Compile the files, as many at once as the machine has cores."""
    running = failed = 0
    for source in sorted(folder.rglob("*.py")):
        if running == CORES:
            failed |= os.wait()[1]
            running -= 1
        if os.fork() == 0:
            run(folder, source)
        running += 1
    for _ in range(running):
        failed |= os.wait()[1]
    sys.exit(1 if failed else 0)


def run(folder: Path, source: Path) -> NoReturn:
    """Compile a file in a process that was forked for it."""
    try:
        compile_file(folder, source)
    except py_compile.PyCompileError:
        os._exit(0)
    except BaseException as error:  # the fork must not return into the parent's code
        print(f"{source}: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
