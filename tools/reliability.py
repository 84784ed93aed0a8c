"""Writes docs/reliability.md from what ``make torture``, ``load`` and ``fuzz`` measured last.

python tools/reliability.py
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = REPOSITORY / "experiments" / "results"
PAGE = REPOSITORY / "docs" / "reliability.md"
TEMPLATE = """\
# Reliability

What was done to graphkin to break it, and what came of it. `python tools/reliability.py` writes
this page from the results of the commands below; `SECURITY.md` in the repository says what is
promised.

## Kills, full disks, cuts of the power

`make torture N={trials}` on {torture_date}. A process changes a library (create, add, tag, remove,
compact) or a graph store (append). At a random one of its changes of files it is killed, or the
disk is full from there on, or the power is cut: what was not flushed is then lost, all of it, or
each write with probability 1/2. *Lost* are trials in which an acknowledged step was gone, *halfway*
those that left a state between two steps.

{torture}

{load}

## Fuzzing

`make fuzz MINUTES={minutes:g}` on {fuzz_date}: atheris, guided by the coverage of graphkin's own
code; {cpu_minutes:.1f} minutes of the processor and {executions:,} executions in all. A finding is
an input that raises anything but graphkin's own errors, takes more than 25 s or more than 3 GB.
Inputs that reached something new are kept in `fuzz-corpora`, and the next run begins with them.

{fuzz}

{api}

## What others promise

| | promise | graphkin |
|---|---|---|
| SQLite | {sqlite} | {libraries} |
| faiss | none for files: `write_index` writes in place | its index is only in memory |
| capa | none that it documents: files are read in its own process | processes with limits do |
"""
LOAD = """\
## Many at once

`make load MINUTES={minutes:g}`.{note}

### One library

On {library_date}, {readers} processes that read and {writers} that write had one library for
{library_minutes:g} minutes. Writers add, tag and remove batches of 20 functions, and compact; every
step is a tag, so that readers can tell which step a state is from. What a reader finds must be the
state after the last step that was acknowledged before it began, or after one that had begun when it
ended.

| operations | errors | writes refused, as others wrote | reads of another state | writes lost |
|---|---|---|---|---|
| {count:,} | {errors} | {busy} | {inconsistent} | {lost} |

{operations}

### The server

On {server_date}, `graphkin serve` had {clients} clients for {server_minutes:g} minutes: searches
with a rerank of {rerank}, functions, comparisons, scans, files now and then, and one request of six
wrong. {hung} requests had no answer, {dropped} connections were dropped, and {cut} answers cut.
Now and then {burst} more searches came at once than there are clients. Every 503 says when to try
again.

| requests | answers by status |
|---|---|
| {requests:,} of clients | {statuses} |
| {burst_requests:,} at once | {burst_statuses} |

{answers}

The server's process took {warm:.0f} MB after the first fifth of the time and {end:.0f} MB at its
end ({growth:+.1%}); {incoming} files of uploads were left. It was then told to stop (SIGTERM) while
every client waited for an answer. Answers to the searches in flight: {in_flight}. It ended after
{stop_seconds:.1f} s with code {code}, and left {left} files and {processes} processes.

### Machines that are lost

{nodes}
"""
MILVUS = """\
**Milvus.** On {date}, a server (2.3.5, the one that the package `milvus` has) was killed {kills}
times while one thread added and two searched, each time after {seconds_between:g} s of work, and
started again 3 s later. Of {acknowledged:,} rows that were acknowledged {lost} were lost; {wrong}
searches gave a wrong answer, and `verify` found {damage} damages. The server answered again
{server} s after its start, and the library {work} s after it: until then the server is loading the
collection. What a user sees meanwhile:

{errors}

Where the server does not come back, a call ends with such an error at once; nothing is repeated.
"""
RAY = """\
**Ray.** On {date}, `graphkin index` read {files} files on a cluster of two machines, which are
groups of processes here. {nodes} machines, each of which was replaced, and {workers} workers were
killed meanwhile. {skipped} files were left out, and {different} of {functions:,} functions were not
those of a run without Ray. When the head of the cluster was killed, the command ended after
{seconds:.0f} s with code {code}:

{lines}

The library had {stored:,} functions then, and `verify` found {damage} damages. The same command on
another cluster did the rest: {head_different} functions differ.
"""
API = """\
The HTTP API is asked by schemathesis, from its own description, of a server that is started for
it. Most names of files, functions and jobs in the requests are real, so that what lies behind them
is reached. In {seconds:.0f} s there were {requests:,} requests to {operations} operations, of which
{reached} answered with success at least once; {findings} findings. A finding is an answer 500, one
that the description does not have, or none.
"""
SQLITE = (
    "transactions survive a crash and a cut of the power, where the disk keeps what it flushed; "
    "damage is noticed only with its extension for checksums"
)
LIBRARIES = "SQLite files, `synchronous = FULL`, with checksums of their own for each entry"


def table(head: str, rows: list[str]) -> str:
    return "\n".join((head, "|---" * (head.count("|") - 1) + "|", *rows))


def torture_table(scenarios: dict[str, Any]) -> str:
    """A row for each scenario and fault."""
    columns = ("trials", "acknowledged", "lost", "unreadable", "halfway")
    rows = [
        f"| {scenario} | {fault} | {' | '.join(str(own[name]) for name in columns)} "
        f"| {own['reopen_seconds']:.2f} s |"
        for scenario, faults in scenarios.items()
        for fault, own in faults.items()
    ]
    return table(f"| what | fault | {' | '.join(columns)} | reopened within |", rows)


def fuzz_table(targets: dict[str, Any]) -> str:
    """A row for each reader."""
    rows = [
        f"| {name} | {own['seconds']:.0f} | {own['executions']:,} | {own['branches']:,} "
        f"| {len(own['findings'])} |"
        for name, own in targets.items()
    ]
    return table("| reader | seconds | executions | places reached | findings |", rows)


def times_table(operations: dict[str, Any]) -> str:
    """A row for each kind of operation."""
    rows = [
        f"| {name} | {own['count']:,} | {own['p50_ms']:,.0f} | {own['p99_ms']:,.0f} "
        f"| {own['max_ms']:,.0f} |"
        for name, own in operations.items()
    ]
    return table("| | count | median, ms | 99th percentile, ms | maximum, ms |", rows)


def listed(counts: dict[str, int]) -> str:
    """``200: 12, 503: 3``."""
    return ", ".join(f"{name}: {count:,}" for name, count in counts.items()) or "none"


def load_text(load: dict[str, Any]) -> str:
    """What came of many at once."""
    library, server, nodes = load["library"], load["server"], load["nodes"]
    stop, memory = server["stop"], server["memory"]
    return LOAD.format(
        minutes=server["minutes"],
        note=f" {server['note']}" if server.get("note") else "",
        library_date=library["date"],
        library_minutes=library["minutes"],
        **{
            name: library[name]
            for name in ("readers", "writers", "errors", "busy", "inconsistent", "lost")
        },
        count=sum(own["count"] for own in library["operations"].values()),
        operations=times_table(library["operations"]),
        server_date=server["date"],
        server_minutes=server["minutes"],
        **{
            name: server[name]
            for name in ("clients", "rerank", "requests", "hung", "dropped", "cut")
        },
        statuses=listed(server["statuses"]),
        burst=server["burst_size"],
        burst_requests=server["bursts"]["requests"],
        burst_statuses=listed(server["bursts"]["statuses"]),
        answers=times_table(
            {**server["answers"], "search in a burst": server["bursts"]["answers"]}
        ),
        warm=memory["warm_mb"],
        end=memory["end_mb"],
        growth=memory["growth"],
        incoming=server["incoming_left"],
        in_flight=listed(stop["in_flight"]),
        stop_seconds=stop["seconds"],
        code=stop["code"],
        left=len(stop["left_behind"]),
        processes=stop["processes_left"],
        nodes="\n".join((milvus_text(nodes), ray_text(nodes))).rstrip(),
    ).rstrip()


def milvus_text(nodes: dict[str, Any]) -> str:
    own = nodes["milvus"]
    if "absent" in own:
        return f"**Milvus.** Not tried on {nodes['date']}: {own['absent']}\n"
    seconds = [
        f"{min(values):.0f} to {max(values):.0f}"
        for values in ([back[name] for back in own["back_seconds"]] for name in ("server", "work"))
    ]
    return MILVUS.format(
        date=nodes["date"],
        **{
            name: own[name]
            for name in ("kills", "seconds_between", "acknowledged", "lost", "wrong", "damage")
        },
        server=seconds[0],
        work=seconds[1],
        errors=code(own["errors"]),
    )


def ray_text(nodes: dict[str, Any]) -> str:
    own = nodes["ray"]
    if "absent" in own:
        return f"**Ray.** Not tried on {nodes['date']}: {own['absent']}\n"
    head = own["head"]
    return RAY.format(
        date=nodes["date"],
        **{name: own[name] for name in ("files", "functions", "skipped", "different")},
        nodes=own["killed"]["nodes"],
        workers=own["killed"]["workers"],
        seconds=head["seconds_to_end"],
        code=head["code"],
        lines=code(head["last_lines"]),
        stored=head["stored_after"],
        damage=head["damage"],
        head_different=head["different"],
    )


def code(lines: Iterable[str]) -> str:
    return "\n".join(("```text", *lines, "```"))


def api_text(api: dict[str, Any]) -> str:
    """What came of the requests to the API."""
    operations = api["operations"].values()
    return API.format(
        seconds=api["seconds"],
        requests=sum(own["requests"] for own in operations),
        operations=len(operations),
        reached=sum(own["reached"] > 0 for own in operations),
        findings=len(api["findings"]),
    ).rstrip()


def page(torture: dict[str, Any], fuzz: dict[str, Any], load: dict[str, Any]) -> str:
    """The page of three sets of results."""
    targets = fuzz["targets"]
    return TEMPLATE.format(
        trials=torture["trials"],
        torture_date=torture["date"],
        torture=torture_table(torture["scenarios"]),
        load=load_text(load),
        minutes=fuzz["minutes"],
        fuzz_date=fuzz["date"],
        cpu_minutes=sum(own["seconds"] for own in targets.values()) / 60,
        executions=sum(own["executions"] for own in targets.values()),
        fuzz=fuzz_table(targets),
        api=api_text(fuzz["api"]) if "api" in fuzz else "",
        sqlite=SQLITE,
        libraries=LIBRARIES,
    )


def read(name: str) -> dict[str, Any]:
    """One set of results."""
    return dict(json.loads((RESULTS / f"{name}.json").read_text()))


if __name__ == "__main__":
    PAGE.write_text(page(read("torture"), read("fuzz"), read("load")))
