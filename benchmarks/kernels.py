"""Times the candidates for the fused edge operator, forward and backward, on one thread.

    python benchmarks/kernels.py [--json] [--repeats N]

The operator is out_i = sum_j relu(a_i + b_j) over the neighbours j of every node i, with a and
b of width 64: what an edge costs in a propagation step. Every candidate is a differentiable
torch operator; all take turns on the same batches of 20 pairs of random graphs. The second
table is the time from a fresh process, with torch loaded, until two batches of different size
are through: once with empty caches, once with those that the first process filled.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", NUMBA_NUM_THREADS="1")

import torch
from torch import Tensor

from graphkin.graphs.batch import Adjacency
from graphkin.research.tasks.edits import EditTask

SETTINGS = [(20, 0.2), (20, 0.5), (50, 0.2), (50, 0.5)]
PAIRS = 20
WIDTH = 64
BATCHES = 4
"""Batches in turn: the number of messages differs from one to the next, as in training."""
WARM_UP = 2
"""Rounds over all batches ahead of the timed ones."""
TOLERANCE = 1e-4
"""Largest difference from plain torch, relative to the largest value."""

Operator = Callable[[Tensor, Adjacency], Tensor]
"""(N, 2 WIDTH) projections, a beside b, and who receives from whom -> (N, WIDTH)."""


class UnavailableError(Exception):
    """A candidate that this machine cannot run."""


def plain_torch(cache: Path) -> Operator:
    """Gather, add, ReLU, index_add: one operator after another."""
    from graphkin.models.kernels import plain

    return lambda projected, adjacency: plain.message_sum(projected, adjacency, None, None)


def compiled_torch(cache: Path) -> Operator:
    """The same through torch.compile: for the first size alone, then for any."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(cache)
    warnings.filterwarnings("ignore")
    # dynamic=True would leave even the width open, which a model fixes.
    return torch.compile(plain_torch(cache))


def numba(cache: Path) -> Operator:
    """What graphkin uses."""
    os.environ["NUMBA_CACHE_DIR"] = str(cache)
    from graphkin.models.kernels.dispatch import backend, message_sum

    if backend() != "fused":
        raise UnavailableError("numba is not installed")
    return lambda projected, adjacency: message_sum(projected, adjacency, None, None)


def c_any_width(cache: Path) -> Operator:
    """The same loops in C, the width given at run time as for numba."""
    return c_operator(cache / "any_width.so", [])


def c_fixed_width(cache: Path) -> Operator:
    """The same loops in C, the width a constant of the compiler: sums stay in registers."""
    return c_operator(cache / "fixed_width.so", [f"-DWIDTH={WIDTH}"])


CANDIDATES: dict[str, Callable[[Path], Operator]] = {
    "torch": plain_torch,
    "torch.compile": compiled_torch,
    "numba": numba,
    "C": c_any_width,
    f"C, {WIDTH} fixed": c_fixed_width,
}

C_SOURCE = """
#include <stdint.h>

/* gcc 12 would join the loop over k of several edges, and then gather single floats. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-loop-unroll-and-jam")
#endif

#ifndef WIDTH
#define WIDTH width
#endif

void message_forward(const float *restrict projected, const int64_t *restrict offsets,
                     const int64_t *restrict neighbours, float *restrict out,
                     int64_t nodes, int64_t width) {
    for (int64_t i = 0; i < nodes; i++) {
        const float *receiver = projected + i * 2 * WIDTH;
        float *target = out + i * WIDTH;
        float sum[WIDTH];
        for (int64_t k = 0; k < WIDTH; k++) sum[k] = 0;
        for (int64_t e = offsets[i]; e < offsets[i + 1]; e++) {
            const float *sender = projected + neighbours[e] * 2 * WIDTH + WIDTH;
            for (int64_t k = 0; k < WIDTH; k++) {
                float value = receiver[k] + sender[k];
                sum[k] += value > 0 ? value : 0;
            }
        }
        for (int64_t k = 0; k < WIDTH; k++) target[k] = sum[k];
    }
}

void message_backward(const float *restrict grad, const float *restrict projected,
                      const int64_t *restrict offsets, const int64_t *restrict neighbours,
                      float *restrict grad_projected, int64_t nodes, int64_t width) {
    for (int64_t i = 0; i < nodes; i++) {
        const float *receiver = projected + i * 2 * WIDTH;
        const float *incoming = grad + i * WIDTH;
        float *grad_receiver = grad_projected + i * 2 * WIDTH;
        float sum[WIDTH];
        for (int64_t k = 0; k < WIDTH; k++) sum[k] = 0;
        for (int64_t e = offsets[i]; e < offsets[i + 1]; e++) {
            const float *sender = projected + neighbours[e] * 2 * WIDTH + WIDTH;
            float *grad_sender = grad_projected + neighbours[e] * 2 * WIDTH + WIDTH;
            for (int64_t k = 0; k < WIDTH; k++) {
                float passed = receiver[k] + sender[k] > 0 ? incoming[k] : 0;
                sum[k] += passed;
                grad_sender[k] += passed;
            }
        }
        for (int64_t k = 0; k < WIDTH; k++) grad_receiver[k] += sum[k];
    }
}
"""


def c_operator(library: Path, options: list[str]) -> Operator:
    """The C source as a torch operator; compiled unless the library is there already."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise UnavailableError("there is no C compiler (cc) on this machine")
    if not library.exists():
        source = library.with_suffix(".c")
        source.write_text(C_SOURCE)
        flags = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC", *options]
        command = [compiler, *flags, str(source), "-o", str(library)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            raise UnavailableError(f"cc failed: {result.stderr.strip()}")
    loaded = ctypes.CDLL(str(library))

    class CMessageSum(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, projected: Tensor, offsets: Tensor, neighbours: Tensor) -> Tensor:
            ctx.save_for_backward(projected, offsets, neighbours)
            nodes, width = projected.shape[0], projected.shape[1] // 2
            out = projected.new_empty(nodes, width)
            loaded.message_forward(*pointers(projected, offsets, neighbours, out), nodes, width)
            return out

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
            projected, offsets, neighbours = ctx.saved_tensors
            out = torch.zeros_like(projected)
            arrays = pointers(grad.contiguous(), projected, offsets, neighbours, out)
            loaded.message_backward(*arrays, *grad.shape)
            return out, None, None

    return lambda projected, adjacency: CMessageSum.apply(
        projected, adjacency.offsets, adjacency.neighbours
    )


def pointers(*tensors: Tensor) -> list[ctypes.c_void_p]:
    return [ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors]


@dataclass(frozen=True)
class Row:
    """One candidate at one setting: milliseconds over the repeats."""

    candidate: str
    n: int
    p: float
    messages: int
    """Mean over the batches."""
    forward_ms: float
    """Median."""
    backward_ms: float
    """Median."""
    forward_min_ms: float
    backward_min_ms: float
    difference: float
    """Largest from plain torch, of values and gradients, relative to the largest value."""


@dataclass(frozen=True)
class FirstCall:
    """Seconds from a fresh process, with torch loaded, until two batches are through."""

    candidate: str
    cold: float
    warm: float


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Times the candidates for the fused edge operator on one thread."
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--repeats", type=int, default=60, help="timed calls (default 60)")
    parser.add_argument("--first", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.first:
        name, cache = arguments.first
        print(first_call(CANDIDATES[name], Path(cache)))
        return

    with tempfile.TemporaryDirectory() as folder:
        operators = {}
        for name, make in CANDIDATES.items():
            try:
                operators[name] = usable(make, Path(folder))
            except UnavailableError as error:
                print(f"{name} is left out: {error}", file=sys.stderr)
        rows = [row for n, p in SETTINGS for row in measure(operators, n, p, arguments.repeats)]
    firsts = [first_calls(name) for name in operators]
    if arguments.json:
        document = {
            "steady": [asdict(row) for row in rows],
            "first_call": [asdict(first) for first in firsts],
        }
        print(json.dumps(document, indent=2))
    else:
        print_tables(rows, firsts, arguments.repeats)


def usable(make: Callable[[Path], Operator], cache: Path) -> Operator:
    """The operator, once it has run: torch.compile says only then what it lacks."""
    operator = make(cache)
    try:
        run(operator, *inputs(*SETTINGS[0], step=0))
    except Exception as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise UnavailableError(reason[0]) from error
    return operator


def inputs(n: int, p: float, step: int) -> tuple[Tensor, Tensor, Adjacency]:
    """Projections (N, 2 WIDTH), gradient of the result (N, WIDTH), and the messages."""
    batch = EditTask(nodes=(n, n), p=(p, p)).batch(step, PAIRS, "pairs").graphs
    generator = torch.Generator().manual_seed(step)
    projected = torch.randn(batch.num_nodes, 2 * WIDTH, generator=generator)
    grad = torch.randn(batch.num_nodes, WIDTH, generator=generator)
    return projected.requires_grad_(), grad, batch.incoming


def run(
    operator: Operator, projected: Tensor, grad: Tensor, adjacency: Adjacency
) -> tuple[Tensor, Tensor, float, float]:
    """Value, gradient, and the seconds that each took."""
    start = time.perf_counter()
    out = operator(projected, adjacency)
    middle = time.perf_counter()
    (slope,) = torch.autograd.grad(out, projected, grad)
    return out, slope, middle - start, time.perf_counter() - middle


def measure(operators: dict[str, Operator], n: int, p: float, repeats: int) -> list[Row]:
    """Times all candidates in turn on the batches of one setting."""
    print(f"n={n} p={p} ...", file=sys.stderr)
    batches = [inputs(n, p, step) for step in range(BATCHES)]
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in operators}
    for turn in range(WARM_UP * BATCHES + repeats):
        for name, operator in operators.items():
            *_, forward, backward = run(operator, *batches[turn % BATCHES])
            if turn >= WARM_UP * BATCHES:
                times[name].append((1e3 * forward, 1e3 * backward))
    rows = []
    for name, operator in operators.items():
        difference = max(largest_difference(operator, *batch) for batch in batches)
        if not difference < TOLERANCE:
            sys.exit(f"{name} differs from plain torch by {difference:.2g} at n={n}, p={p}")
        forward, backward = zip(*times[name], strict=True)
        rows.append(
            Row(
                candidate=name,
                n=n,
                p=p,
                messages=round(statistics.mean(len(batch[2].neighbours) for batch in batches)),
                forward_ms=statistics.median(forward),
                backward_ms=statistics.median(backward),
                forward_min_ms=min(forward),
                backward_min_ms=min(backward),
                difference=difference,
            )
        )
    return rows


def largest_difference(
    operator: Operator, projected: Tensor, grad: Tensor, adjacency: Adjacency
) -> float:
    reference = run(plain_torch(Path()), projected, grad, adjacency)[:2]
    ours = run(operator, projected, grad, adjacency)[:2]
    return max(
        float((a - b).abs().max() / b.abs().max()) for a, b in zip(ours, reference, strict=True)
    )


def first_call(make: Callable[[Path], Operator], cache: Path) -> float:
    """Seconds for two batches; importing what the candidate needs is part of it."""
    first, second = (inputs(*SETTINGS[-1], step=step) for step in range(2))
    start = time.perf_counter()
    operator = make(cache)
    run(operator, *first)
    run(operator, *second)
    return time.perf_counter() - start


def first_calls(name: str) -> FirstCall:
    print(f"first call of {name} ...", file=sys.stderr)
    kernels = "fused" if name == "numba" else "torch"
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, __file__, "--first", name, cache]
        environment = {**os.environ, "GRAPHKIN_KERNELS": kernels}
        cold, warm = (
            float(subprocess.check_output(command, env=environment, text=True)) for _ in range(2)
        )
    return FirstCall(name, cold, warm)


def print_tables(rows: list[Row], firsts: list[FirstCall], repeats: int) -> None:
    print(f"Milliseconds for {PAIRS} pairs, one thread: median (min) of {repeats} calls\n")
    print(f"{'':14} {'n':>4} {'p':>4} {'messages':>9} {'forward':>16} {'backward':>16}")
    for row in rows:
        forward = f"{row.forward_ms:.2f} ({row.forward_min_ms:.2f})"
        backward = f"{row.backward_ms:.2f} ({row.backward_min_ms:.2f})"
        print(
            f"{row.candidate:14} {row.n:>4} {row.p:>4} {row.messages:>9,} "
            f"{forward:>16} {backward:>16}"
        )
    print("\nSeconds from a fresh process, with torch loaded, for the first two batches\n")
    print(f"{'':14} {'cold':>8} {'warm':>8}")
    for first in firsts:
        print(f"{first.candidate:14} {first.cold:>8.2f} {first.warm:>8.2f}")


if __name__ == "__main__":
    main()
