"""One fit of 1e8 rows of 8 columns from Parquet: memory, seconds a pass, killed on the way and gone on with.

    python benchmarks/hundred_million.py --folder DIR [--rows 1e8] [--components 8] [--max-iter 12] [--kill-after 90]

DIR takes the table (3.2 GB at 1e8 rows; made once, then used again), the copy that is read in its place, and the
checkpoint. The fit runs in a process of its own, with progress; it is killed (SIGKILL) after some seconds, and the same
command then goes on from its checkpoint. Shown are seconds a pass, the resident memory at its peak beside that of a fit
of 1e5 rows, and the ELBO. ``--undisturbed`` runs a second fit that is not killed, to compare the bits.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

N_COLUMNS = 8
_ROW_GROUP = 200_000


def write_table(path: Path, n_rows: int) -> None:
    """Write rows of a mixture of eight Gaussians, as float32, in row groups."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    centres = 1.2 * rng.standard_normal((8, N_COLUMNS))
    names = [f"x{number}" for number in range(N_COLUMNS)]
    schema = pa.schema([(name, pa.float32()) for name in names])
    part = path.with_suffix(".part")
    with pq.ParquetWriter(part, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, n_rows, _ROW_GROUP):
            size = min(_ROW_GROUP, n_rows - start)
            rows = rng.standard_normal((size, N_COLUMNS), dtype=np.float32)
            rows += centres[rng.integers(8, size=size)].astype(np.float32)
            writer.write_table(pa.table([pa.array(column) for column in rows.T], schema=schema))
    part.replace(path)


def fit(options: argparse.Namespace) -> None:
    """Fit the table, telling each pass on standard error, and print what came of it as JSON."""
    import caviar as cv

    clock = [time.perf_counter()]

    def tell(event: cv.Progress) -> None:
        clock.append(time.perf_counter())
        took = clock[-1] - clock[-2]
        print(
            f"  pass {event.iteration:3}  ELBO {event.elbo:.2f}  {took:6.1f} s", file=sys.stderr, flush=True
        )

    table = cv.scan(options.table, directory=options.folder)
    mixture = cv.BayesianGaussianMixture(
        options.components, random_state=0, max_iter=options.max_iter, tol=0.0, verbose=tell
    )
    mixture.fit(
        table, **({"checkpoint": options.checkpoint, "checkpoint_every": 0} if options.checkpoint else {})
    )
    status = Path("/proc/self/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    found = {
        "elbo": mixture.elbo_,
        "passes": mixture.n_iter_,
        "seconds a pass": float(np.median(np.diff(clock)[1:])) if len(clock) > 2 else None,
        "peak MB": peak / 1024,
        "bits": mixture.means_.tobytes().hex()[:32],
    }
    print(json.dumps(found))


def run(
    options: argparse.Namespace, table: Path, checkpoint: Path | None, kill_after: float | None
) -> dict | None:
    """Return what a fit in its own process printed; None if it was killed."""
    command = [sys.executable, __file__, "--fit", "--folder", str(options.folder), "--table", str(table)]
    command += ["--components", str(options.components), "--max-iter", str(options.max_iter)]
    command += ["--checkpoint", str(checkpoint)] if checkpoint else []
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        out, _ = child.communicate(timeout=kill_after)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        return None
    if child.returncode:
        raise SystemExit(child.returncode)
    return json.loads(out.splitlines()[-1])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rows", type=float, default=1e8)
    parser.add_argument("--components", type=int, default=8)
    parser.add_argument("--max-iter", type=int, default=12)
    parser.add_argument("--kill-after", type=float, default=90.0)
    parser.add_argument("--undisturbed", action="store_true")
    parser.add_argument("--fit", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--table", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--checkpoint", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit:
        fit(options)
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    few, many = options.folder / "rows_1e5.parquet", options.folder / f"rows_{options.rows:g}.parquet"
    for path, n_rows in ((few, 100_000), (many, int(options.rows))):
        if not path.exists():
            start = time.perf_counter()
            write_table(path, n_rows)
            print(
                f"wrote {path.name}: {path.stat().st_size / 1e9:.2f} GB, {time.perf_counter() - start:.0f} s"
            )
    small = run(options, few, None, None)
    assert small is not None
    checkpoint = options.folder / "run.ckpt"
    checkpoint.unlink(missing_ok=True)
    found, kills = run(options, many, checkpoint, options.kill_after), 0
    while found is None:
        kills += 1
        print(f"killed after {options.kill_after:g} s; the same command again", flush=True)
        found = run(options, many, checkpoint, None)
    print(f"\n{'':>12} {'rows':>12} {'passes':>7} {'s a pass':>9} {'peak MB':>8} {'ELBO':>20}")
    for name, n_rows, own in (("few rows", 1e5, small), (f"killed {kills}x", options.rows, found)):
        told = own["seconds a pass"] or float("nan")
        print(
            f"{name:>12} {n_rows:12,.0f} {own['passes']:7} {told:9.2f} {own['peak MB']:8.0f} {own['elbo']:20.6f}"
        )
    print(f"memory beyond that of few rows: {found['peak MB'] - small['peak MB']:.0f} MB")
    if options.undisturbed:
        other = run(options, many, None, None)
        assert other is not None
        print(
            f"undisturbed: ELBO {other['elbo']:.6f}; the same bits: {other == {**found, **_other_times(other)}}"
        )


def _other_times(run_: dict) -> dict:
    return {key: run_[key] for key in ("seconds a pass", "peak MB")}


if __name__ == "__main__":
    main()
