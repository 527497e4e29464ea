"""A child process that loads damaged files under limits of memory and time, and prints what was wrong, line by line.

Usage: python hostile_child.py OUTPUT NUMBER..., with a folder to write to, and numbers of mutants. These are made from
the files that are
stored beside this program; what to do with a loaded one stands beside each.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

import caviar as cv
from storage.bombs import bombs
from storage.mutants import mutant

STORED = Path(__file__).resolve().parent / "stored"
SECONDS = 1.0
SPARE = 512 * 2**20
"""Bytes of address space for all that is loaded, whatever a file asks for."""
CONSTANT = 128 * 2**20
"""Bytes that a load may take besides ten times the file: what is made of the longest header."""
FORBIDDEN = (
    "compile",
    "exec",
    "import",
    "os.",
    "subprocess.",
    "socket.",
    "pickle.",
    "ctypes.",
    "shutil.",
    "marshal.",
)

watching = False
seen: list[str] = []


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Note what only code could do, or a file that is opened to be written."""
    if not watching:
        return
    if event.startswith(FORBIDDEN) or (event == "open" and arguments[1] not in ("rb", "r", None)):
        seen.append(f"{event} {arguments!r:.80}")


def load(path: Path, *, traced: bool) -> tuple[Any, str]:
    """Return what a file gives, or None; and what was wrong with how it came."""
    global watching
    if traced:
        tracemalloc.start()
    seen.clear()
    # of the processor: a busy machine makes no file a slow one
    started, found, problem = time.process_time(), None, ""
    watching = True
    try:
        found = cv.load(path)
    except cv.DataError as error:
        if len(str(error)) > 1500 or not str(error):
            problem = f"a message of {len(str(error))} letters"
    except BaseException as error:  # noqa: BLE001
        problem = f"load: {type(error).__name__}: {error!s:.200}"
    finally:
        watching = False
    took = time.process_time() - started
    if traced:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        if peak > 10 * path.stat().st_size + CONSTANT:
            problem = problem or f"{peak / 2**20:.0f} MB for {path.stat().st_size} bytes"
        took /= 4
    if took > SECONDS:
        problem = problem or f"{took:.2f} s"
    return found, problem or (f"ran {seen[0]}" if seen else "")


def use(found: Any, numbers: dict[str, Any], folder: Path) -> str:
    """Use what was loaded; return what was wrong: anything but a result or an error of caviar."""
    posterior, data = getattr(found, "posterior_", found), numbers.get("data", {})
    if found is not posterior:
        rows = np.array(numbers["rows"])
        data = {"x": rows[:, 0] if isinstance(found, cv.KnownVarianceMixture) else rows}
    calls = [lambda: str(found), lambda: found.save(folder / "again.out")]
    if isinstance(posterior, cv.Posterior):
        calls += [
            lambda: posterior.summary(),
            lambda: posterior.elbo_at({}, data),
            lambda: posterior.local(data),
            lambda: posterior.sample(1, seed=0),
            lambda: cv.report.page_of(found),
        ]
    if found is not posterior:
        calls += [lambda: found.score_samples(rows), lambda: cv.report.component_table(found)]
    for number, call in enumerate(calls):
        try:
            call()
        except cv.CaviarError:
            pass
        except Exception as error:  # noqa: BLE001
            return f"use {number}: {type(error).__name__}: {error!s:.200}"
    return ""


def main(folder: Path, chosen: list[int]) -> None:
    """Load what these numbers make of the files, and print what was wrong."""
    files = sorted(STORED.glob("format-*/*.caviar"))
    contents = {path: path.read_bytes() for path in files}
    numbers = {path: json.loads(path.with_suffix(".json").read_text(encoding="utf-8")) for path in files}
    used = {files[number // 5 % len(files)] for number in chosen}
    for path in sorted(used):
        # what is imported at first use is imported now
        problem = use(cv.load(path), numbers[path], folder)
        assert not problem, (path, problem)
    sys.addaudithook(watch)
    virtual = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (virtual + SPARE, virtual + SPARE))
    target = folder / "mutant.out"
    tally = {"loaded": 0, "refused": 0, "wrong": 0}
    slowest = 0.0

    def check(what: str, path: Path, content: bytes, *, traced: bool) -> None:
        nonlocal slowest
        target.write_bytes(content)
        print("at", what, path.name, file=sys.stderr, flush=True)
        started = time.process_time()
        found, problem = load(target, traced=traced)
        slowest = max(slowest, time.process_time() - started)
        if found is not None and not problem:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                problem = use(found, numbers[path], folder)
        tally["loaded" if found is not None else "refused"] += 1
        if problem:
            tally["wrong"] += 1
            print(json.dumps({"wrong": f"{what} of {path.name}: {problem}"}), flush=True)

    if 0 in chosen:
        for path in files[-1:]:
            # traced loads take four times as long: few mutants leave memory to the limit
            every = len(chosen) > 100
            for what, content in bombs(contents[path], every=every):
                check(what, path, content, traced=every)
    for number in chosen:
        path = files[number // 5 % len(files)]
        check(f"mutant {number}", path, mutant(contents[path], number), traced=number % 8 == 3)
    print(json.dumps({**tally, "slowest": slowest}), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("error")
    main(Path(sys.argv[1]), [int(number) for number in sys.argv[2:]])
