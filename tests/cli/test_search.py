"""The verbs of a library, as a person types them, on the bundled samples."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from graphkin._support.files import write_all_atomically
from graphkin.binaries import samples
from graphkin.binaries.targets import list_functions, parse_target
from graphkin.cli.search import scan, search
from graphkin.cli.search_options import ReportOptions
from graphkin.graphs import Graph
from graphkin.library.engines.sqlite.engine import SqliteEngine
from graphkin.library.scan import MIN_BLOCKS, MIN_PROBABILITY, RERANK, TOP
from graphkin.models import GraphMatcher
from tests.command_line import Graphkin, Outcome
from tests.library.sample_models import search_model

BEAT, PROTO = "libkinbeat.so", "libkinproto.so"
KNOWN = samples.path(f"gcc-O2/{BEAT}")
NAME = "process_heartbeat"


def mnemonics() -> tuple[str, ...]:
    """Those of the sample, so that codes differ."""
    functions = list_functions(parse_target(str(samples.path(f"gcc-O0/{PROTO}"))))
    words = {
        word for function in functions for block in function.blocks for word in block.mnemonics
    }
    return tuple(sorted(words))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a model without training."""
    folder = tmp_path_factory.mktemp("models") / "small"
    files = search_model(words=mnemonics()).files
    write_all_atomically({folder / name: content for name, content in files.items()})
    return folder


@pytest.fixture(scope="module")
def library_bytes(model: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The library of :func:`library`, made once."""
    from graphkin import Library
    from graphkin.library.indexing.index import index_paths
    from graphkin.library.models import SearchModel

    path = tmp_path_factory.mktemp("library") / "library.kin"
    with Library.create(path, SearchModel.load(model)) as index:
        index_paths(index, [KNOWN], tags={"cve": "DEMO-2014-0001"})
        index_paths(index, [samples.path(f"gcc-O0/{PROTO}")])
        index.compact()
    return path.read_bytes()


@pytest.fixture
def library(library_bytes: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "library.kin"
    path.write_bytes(library_bytes)
    return path


def results(outcome: Outcome) -> list[dict[str, Any]]:
    """The results of a report."""
    assert outcome.code == 0, outcome.err
    document: list[dict[str, Any]] = json.loads(outcome.out)["results"]
    return document


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


class TestIndex:
    def test_a_new_library_and_the_same_again(self, run: Graphkin, model: Path, tmp_path: Path):
        path = tmp_path / "new.kin"
        first = run("index", path, KNOWN, "--model", model, "--json", "--jobs", 1)
        assert first.code == 0, first.err
        document = json.loads(first.out)
        assert document["added"] == document["total"] > 0
        assert document["rates"]["total"] > 0
        again = json.loads(run("index", path, KNOWN, "--json", "--jobs", 1).out)
        assert again["added"] == 0
        assert again["known_files"] == 1
        text = run("index", path, KNOWN, "--jobs", 1).out
        assert "0 functions added" in text
        assert "1 file, 1 known" in text

    def test_paths_from_stdin_and_the_library_by_option(
        self, run: Graphkin, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{KNOWN}\n\n"))
        path = tmp_path / "new.kin"
        outcome = run("index", "--to", path, "-", "--model", model, "--json", "--jobs", 1)
        assert json.loads(outcome.out)["files"] == 1

    def test_one_function_with_a_tag(self, run: Graphkin, model: Path, tmp_path: Path):
        path = tmp_path / "new.kin"
        outcome = run("index", path, f"{KNOWN}:{NAME}", "--model", model, "--add-tag", "cve=X-1")
        assert outcome.code == 0, outcome.err
        (entry,) = lines(run("library", path, "list", "--json").out)
        assert (entry["function"], entry["tags"]) == (NAME, {"cve": "X-1"})
        run("index", path, f"{KNOWN}:{NAME}", "--add-tag", "seen=yes")
        (entry,) = lines(run("library", path, "list", "--json").out)
        assert entry["tags"] == {"cve": "X-1", "seen": "yes"}

    def test_whole_files_come_with_their_call_graphs(self, run: Graphkin, tmp_path: Path):
        path, copied = tmp_path / "library.kin", tmp_path / "copy.kin"
        file = samples.path(f"gcc-O2/{PROTO}")
        run("index", path, f"{file}:url_parse")
        assert run("library", path, "calls").out == "", "of single functions nothing is kept"
        run("index", path, file, "--jobs", 1)
        run("library", "copy", path, copied)
        (graph,) = lines(run("library", copied, "calls", "--json").out)
        assert graph["binary"] == str(file)
        names = [item["name"] for item in graph["functions"]]
        assert set(names) == {item.name for item in list_functions(parse_target(str(file)))}
        kinds = {
            (names[link["source"]], names[link["target"]])
            for link in graph["links"]
            if not link["is_import"]
        }
        assert kinds
        assert f": {len(names)} functions, " in run("library", path, "calls").out
        assert json.loads(run("library", path, "stats", "--json").out)["call_graphs"] == 1
        assert run("library", path, "calls", "--binary", "*other*").out == ""

    def test_a_known_file_gets_a_tag(self, run: Graphkin, library: Path):
        outcome = run("index", library, KNOWN, "--add-tag", "seen=yes", "--jobs", 1)
        assert ", 1 tagged" in outcome.out
        (entry,) = lines(run("library", library, "list", "--tag", "seen", "--json").out)
        assert entry["tags"] == {"cve": "DEMO-2014-0001", "seen": "yes"}
        again = json.loads(run("index", library, KNOWN, "--add-tag", "seen=yes", "--json").out)
        assert (again["known_files"], again["tagged"]) == (1, 0)

    @pytest.mark.parametrize("bad", ["absent.so", f"{KNOWN}:absent"])
    def test_a_bad_input_does_not_stop_the_others(self, run: Graphkin, library: Path, bad: str):
        other = samples.path(f"gcc-O1/{BEAT}")
        outcome = run("index", library, bad, other, "--jobs", 1, "--json")
        assert outcome.code == 21, outcome.err
        assert "absent" in outcome.err
        assert json.loads(outcome.out)["added"] > 0

    def test_another_model_is_refused(self, run: Graphkin, library: Path, tmp_path: Path):
        folder = tmp_path / "other"
        files = search_model(seed=1, words=mnemonics()).files
        write_all_atomically({folder / name: content for name, content in files.items()})
        outcome = run("index", library, KNOWN, "--model", folder)
        assert outcome.code == 13
        assert "made by the model" in outcome.err

    @pytest.mark.parametrize(
        ("arguments", "code", "message"),
        [
            (["{library}"], 12, "name what to add"),
            (["{library}", "{known}", "--add-tag", "cve"], 12, "KEY=VALUE"),
            (["{library}", "{known}", "--add-tag", "a=1", "--add-tag", "a=2"], 12, "two values"),
            (["{library}", "{known}", "--jobs", "0"], 12, "jobs"),
            (["{library}", "{known}", "--backend", "ida"], 12, "unknown backend"),
            (["{known}", "{known}"], 11, "not a library of graphkin"),
            (["{library}", "absent.so"], 11, "absent.so"),
            (["{library}", "{known}:absent"], 11, "has no function absent"),
            (["new.kin", "{known}", "--model", "nothing"], 13, "nothing is neither a model folder"),
            (["milvus://localhost:1/x", "{known}"], 15, "localhost:1"),
        ],
    )
    def test_mistakes(
        self,
        run: Graphkin,
        library: Path,
        monkeypatch: pytest.MonkeyPatch,
        arguments: list[str],
        code: int,
        message: str,
    ):
        monkeypatch.chdir(library.parent)
        filled = [part.format(library=library, known=KNOWN) for part in arguments]
        outcome = run("index", *filled)
        assert (outcome.code, message in outcome.err) == (code, True), outcome.err
        assert not Path("new.kin").exists()


class TestNothingIsLeftBehind:
    @pytest.mark.parametrize("arguments", [("{empty}",), ("{known}", "--model", "edits")])
    def test_a_new_library_that_nothing_was_added_to(
        self, run: Graphkin, tmp_path: Path, arguments: tuple[str, ...]
    ):
        empty = tmp_path / "empty"
        empty.mkdir()
        positions = {"empty": empty, "known": KNOWN}
        outcome = run("index", tmp_path / "new.kin", *(a.format(**positions) for a in arguments))
        assert outcome.code in (11, 13)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["empty"]

    def test_a_library_that_was_there_stays(self, run: Graphkin, library: Path, tmp_path: Path):
        before = json.loads(run("library", library, "stats", "--json").out)["entries"]
        assert run("index", library, tmp_path / "absent.so").code == 11
        assert json.loads(run("library", library, "stats", "--json").out)["entries"] == before

    def test_a_folder_for_a_report_is_refused_at_once(self, run: Graphkin, library: Path):
        outcome = run("scan", library, KNOWN, "-o", library.parent)
        assert (outcome.code, "is a folder" in outcome.err) == (12, True)


class TestSearch:
    def test_a_function_finds_itself(self, run: Graphkin, library: Path):
        outcome = run("search", library, f"{KNOWN}:{NAME}", "--top", 3, "--rerank", 10)
        assert outcome.code == 0, outcome.err
        assert all(len(line) <= 100 for line in outcome.out.splitlines())
        assert NAME in outcome.out.splitlines()[0]
        assert "cve=DEMO-2014-0001" in outcome.out

    def test_json_has_one_object_for_each_function(self, run: Graphkin, library: Path):
        file = samples.path(f"gcc-O0/{PROTO}")
        options = ("--top", 2, "--rerank", 3, "--min-probability", 0)
        searched = results(run("search", library, file, "--json", *options))
        functions = [
            list_function
            for list_function in list_functions(parse_target(str(file)))
            if len(list_function.blocks) >= 5
        ]
        assert [function["query"]["address"] for function in searched] == [
            hex(function.address) for function in functions
        ]
        assert lines(run("search", library, file, "--format", "jsonl", *options).out) == searched
        for function in searched:
            assert len(function["hits"]) == 2
            for hit in function["hits"]:
                assert hit.keys() >= {
                    "binary", "function", "address", "distance", "score", "probability",
                    "rank_by_distance",
                }  # fmt: skip

    def test_without_rerank_the_order_is_that_of_the_codes(self, run: Graphkin, library: Path):
        (searched,) = results(
            run("search", library, f"{KNOWN}:{NAME}", "--json", "--rerank", 0, "--top", 20)
        )
        hits = searched["hits"]
        assert [hit["rank_by_distance"] for hit in hits] == list(range(1, 21))
        assert [hit["distance"] for hit in hits] == sorted(hit["distance"] for hit in hits)
        assert {hit["score"] for hit in hits} == {None}
        assert hits[0]["function"] == NAME

    def test_a_part_of_the_library(self, run: Graphkin, library: Path):
        target = f"{KNOWN}:{NAME}"
        options = ("--json", "--rerank", 0)
        (searched,) = results(run("search", library, target, "--tag", "cve", *options))
        assert [hit["function"] for hit in searched["hits"]] == [NAME]
        (searched,) = results(run("search", library, target, "--binary", "*proto*", *options))
        assert all(hit["binary"].endswith(PROTO) for hit in searched["hits"])
        (searched,) = results(run("search", library, target, "--architecture", "arm", *options))
        assert searched["hits"] == []

    def test_exit_codes(self, run: Graphkin, library: Path):
        target = f"{KNOWN}:{NAME}"
        assert run("search", library, target, "--exit-code", "--rerank", 0).code == 20
        outcome = run("search", library, target, "--exit-code", "--architecture", "arm")
        assert outcome.code == 0
        assert "nothing found" in outcome.out
        outcome = run("search", library, target, "--exit-code", "--min-probability", 1)
        assert outcome.code == 0

    def test_a_repaired_function_is_shown_and_is_not_what_was_asked_for(
        self, run: Graphkin, model: Path, tmp_path: Path
    ):
        path, fixed = tmp_path / "library.kin", samples.path("gcc-O2/libkinbeat-fixed.so")
        run("index", path, fixed, "--model", model, "--add-tag", "fixed=X-1")
        for tag, found in (("cve", True), ("cve=X-*", True), ("cve=Y", False), ("other", False)):
            outcome = run("search", path, f"{fixed}:{NAME}", "--tag", tag, "--exit-code")
            assert outcome.code == 0
            assert ("fixed=X-1" in outcome.out) == found
        run("index", path, KNOWN, "--add-tag", "cve=X-1")
        assert run("search", path, f"{KNOWN}:{NAME}", "--tag", "cve", "--exit-code").code == 20

    @pytest.mark.parametrize(
        ("arguments", "code", "message"),
        [
            (["absent.kin", "{known}"], 11, "no library absent.kin"),
            (["{library}", "absent.so"], 11, "absent.so"),
            (["{library}", "{known}:absent"], 12, "absent"),
            (["{known}", "{known}"], 11, "not a library of graphkin"),
        ],
    )
    def test_mistakes(
        self,
        run: Graphkin,
        library: Path,
        monkeypatch: pytest.MonkeyPatch,
        arguments: list[str],
        code: int,
        message: str,
    ):
        monkeypatch.chdir(library.parent)
        outcome = run("search", *[a.format(library=library, known=KNOWN) for a in arguments])
        assert (outcome.code, message in outcome.err) == (code, True), outcome.err
        assert outcome.out == ""


class TestScan:
    def test_the_defaults_are_those_of_the_page_and_the_demo(self):
        for verb in (scan, search):
            defaults = {name: item.default for name, item in signature(verb).parameters.items()}
            assert defaults["rerank"] == RERANK
            assert defaults["min_probability"] == MIN_PROBABILITY
        assert signature(scan).parameters["top"].default == TOP
        assert ReportOptions().min_blocks == MIN_BLOCKS

    ALL = ("--min-probability", 0, "--rerank", 5)

    def test_formats(self, run: Graphkin, library: Path, tmp_path: Path):
        target = KNOWN
        searched = results(run("scan", library, target, *self.ALL, "--json"))
        assert [function["query"]["function"] for function in searched] == [NAME]
        assert len(searched[0]["hits"]) == 3
        assert searched[0]["hits"][0]["evidence"]["matched_share"] >= 0
        rows = list(csv.DictReader(io.StringIO(
            run("scan", library, target, *self.ALL, "--format", "csv").out
        )))  # fmt: skip
        assert len(rows) == 3
        sarif = json.loads(run("scan", library, target, *self.ALL, "--format", "sarif").out)
        assert sarif["version"] == "2.1.0"
        assert len(sarif["runs"][0]["results"]) >= 1
        page = tmp_path / "report.html"
        outcome = run("scan", library, target, *self.ALL, "--format", "html", "-o", page)
        assert outcome.out == ""
        assert page.read_text().lower().startswith("<!doctype html>")
        other = tmp_path / "again.html"
        table = run("scan", library, target, *self.ALL, "--html", other).out
        assert "DEMO-2014-0001" in table
        assert other.read_text() == page.read_text()

    def test_improbable_hits_are_left_out(self, run: Graphkin, library: Path):
        (searched,) = results(
            run("scan", library, KNOWN, "--min-probability", 1, "--rerank", 5, "--json")
        )
        assert searched["hits"] == []

    def test_a_scan_that_finds_nothing_says_what_a_lower_probability_would(
        self, run: Graphkin, library: Path
    ):
        file = samples.path(f"gcc-O0/{PROTO}")
        outcome = run("scan", library, file, "--min-probability", 1, "--rerank", 5)
        assert "--min-probability 0.1 lists " in outcome.err
        assert "bytes of code" in outcome.err
        assert "bytes of code" not in outcome.out
        outcome = run("search", library, f"{KNOWN}:{NAME}", "--min-probability", 1, "--rerank", 5)
        assert "the best with 0." in outcome.err
        assert "--min-probability 0 lists them" in outcome.err

    def test_evidence_is_of_what_is_printed(
        self, run: Graphkin, library: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ):
        """The table shows the best hit of a function; the page shows them all."""
        explained: list[object] = []
        explain = GraphMatcher.explain_many

        def watched(self: GraphMatcher, pairs: Sequence[tuple[Graph, Graph]]) -> object:
            explained.extend(pairs)
            return explain(self, pairs)

        monkeypatch.setattr(GraphMatcher, "explain_many", watched)
        counts = []
        for options in ((), ("--format", "sarif"), ("--json",), ("--html", tmp_path / "page.html")):
            explained.clear()
            assert run("scan", library, KNOWN, *self.ALL, *options).code == 0
            counts.append(len(explained))
        assert counts == [1, 1, 3, 3]

    @pytest.mark.parametrize(
        ("arguments", "code"),
        [
            ((KNOWN,), 0),
            ((KNOWN, "--exit-code"), 20),
            ((KNOWN, "absent.so"), 21),
            ((KNOWN, f"{KNOWN}:absent"), 21),
            ((KNOWN, "absent.so", "--exit-code", "--architecture", "arm"), 21),
            ((KNOWN, "absent.so", "--exit-code"), 22),
            (("absent.so", "--exit-code"), 11),
            ((f"{KNOWN}:absent", "--exit-code"), 12),
        ],
    )
    def test_exit_codes(
        self, run: Graphkin, library: Path, arguments: tuple[str | Path, ...], code: int
    ):
        outcome = run("scan", library, *arguments, "--min-probability", 0, "--rerank", 0)
        assert outcome.code == code, outcome.err
        if code in (0, 20, 22):
            assert NAME in outcome.out, "what could be read is looked up"

    def test_functions_that_are_all_too_small_are_no_success(self, run: Graphkin, library: Path):
        outcome = run("scan", library, KNOWN, "--min-blocks", 1000)
        assert outcome.code == 21
        assert outcome.out.endswith(": no function was looked up; too few blocks: 1 function\n")
        assert "1 function of 1 file found, none with 1,000 basic blocks" in outcome.err
        assert run("search", library, KNOWN, "--min-blocks", 1000).code == 21
        mixed = run("scan", library, KNOWN, f"{KNOWN}:{NAME}", "--min-blocks", 1000)
        assert mixed.code == 0, "something was looked up"

    def test_a_bad_file_does_not_stop_the_others(self, run: Graphkin, library: Path):
        outcome = run("scan", library, "absent.so", KNOWN, *self.ALL, "--json")
        assert outcome.code == 21
        assert "absent.so" in outcome.err
        report = json.loads(outcome.out)
        assert len(report["results"]) == 1
        assert "absent.so" in report["skipped"][0]
        assert report["files"] == [{"binary": str(KNOWN), "functions": 1, "small": 0}]

    def test_mistakes(self, run: Graphkin, library: Path):
        assert run("scan", library, KNOWN, "--format", "xml").code == 12
        assert run("scan", library, KNOWN, "--format", "csv", "--json").code == 12
        assert run("scan", library, "absent.so").code == 11
        outcome = run("scan", library, "absent.so", "missing.so")
        assert (outcome.code, outcome.err.count("absent.so")) == (11, 1)


class TestCompare:
    def test_text_json_and_page(self, run: Graphkin, model: Path, tmp_path: Path):
        sides = [f"{samples.path(f'{build}/{BEAT}')}:{NAME}" for build in ("gcc-O2", "clang-O0")]
        text = run("compare", *sides, "--model", model)
        assert text.code == 0, text.err
        assert "probability of the same function" in text.out
        assert "\nboth say\n  imports    session_alert, memcpy, session_random" in text.out
        page = tmp_path / "page.html"
        document = json.loads(
            run("compare", *sides, "--model", model, "--json", "--html", page).out
        )
        assert document["left"]["function"] == document["right"]["function"] == NAME
        assert 0 <= document["probability"] <= 1
        assert ["imp", "session_check"] in document["shared"]
        assert ["num", "1000"] in document["shared"]
        both = {tuple(word) for word in document["shared"]}
        assert both.isdisjoint(map(tuple, document["only_left"] + document["only_right"]))
        assert NAME in page.read_text()
        picture = tmp_path / "attention.png"
        run("compare", *sides, "--model", model, "--plot", picture)
        assert picture.read_bytes().startswith(b"\x89PNG")

    def test_a_function_is_like_itself(self, run: Graphkin, model: Path):
        target = f"{KNOWN}:{NAME}"
        document = json.loads(run("compare", target, target, "--model", model, "--json").out)
        assert document["distance"] == 0

    def test_equal_code_that_is_too_small_to_tell(self, run: Graphkin, tmp_path: Path):
        proto, page = samples.path("gcc-O0/libkinproto.so"), tmp_path / "page.html"
        word, lower, large = (f"{proto}:{name}" for name in ("word", "lower", "dns_skip_name"))
        for side in (word, lower):
            document = json.loads(run("compare", side, side, "--json", "--html", page).out)
            assert document["distance"] == 0
            assert document["evidence"]["matched_share"] == 1
            assert (document["probability"], document["note"]) == (0.4, "too small to tell")
            assert "too small to tell" in page.read_text()
        assert "probability of the same function  0.400, too small to tell\n" in (
            run("compare", word, word).out
        )
        document = json.loads(run("compare", large, large, "--json").out)
        assert document["probability"] >= 0.99
        assert document["note"] is None

    def test_all_blocks_of_equal_code_have_a_partner(self, run: Graphkin, tmp_path: Path):
        """Of 55 blocks, nearly half look at several that are alike, and firmly at none."""
        page = tmp_path / "page.html"
        target = f"{samples.path('gcc-O0/libkinproto.so')}:modbus_answer"
        text = run("compare", target, target, "--html", page).out
        assert "blocks that have a partner        100%\n" in text
        assert "100% (55 of 55)" in page.read_text()

    def test_mistakes(self, run: Graphkin, model: Path):
        outcome = run("compare", KNOWN, f"{KNOWN}:{NAME}", "--model", model)
        assert (outcome.code, "name one function" in outcome.err) == (12, True)


class TestProcessors:
    """The samples are for x86-64, and the model knows ARM only."""

    WARNING = "was trained on code for arm, not for x86-64"

    @pytest.fixture
    def arm_model(self, tmp_path: Path) -> Path:
        files = search_model(words=mnemonics(), processors=["arm"]).files
        folder = tmp_path / "arm"
        write_all_atomically({folder / name: content for name, content in files.items()})
        return folder

    def test_every_verb_warns_once(self, run: Graphkin, arm_model: Path, tmp_path: Path):
        library, target = tmp_path / "arm.kin", f"{KNOWN}:{NAME}"
        proto = samples.path(f"gcc-O0/{PROTO}")
        outcomes = [
            run("index", library, KNOWN, proto, "--model", arm_model, "--json"),
            run("search", library, KNOWN, "--json"),
            run("scan", library, KNOWN, proto, "--json"),
            run("compare", target, target, "--model", arm_model, "--json"),
        ]
        for outcome in outcomes:
            assert outcome.code == 0, outcome.err
            assert outcome.err.count(self.WARNING) == 1
            (warning,) = json.loads(outcome.out)["warnings"]
            assert self.WARNING in warning
        assert self.WARNING not in run("index", library, KNOWN).err, "nothing came"

    def test_pages_and_dashboards_say_it(self, run: Graphkin, arm_model: Path, tmp_path: Path):
        library, target = tmp_path / "arm.kin", f"{KNOWN}:{NAME}"
        run("index", library, KNOWN, "--model", arm_model)
        page = tmp_path / "page.html"
        report = json.loads(run("scan", library, KNOWN, "--format", "sarif", "--html", page).out)
        notes = report["runs"][0]["invocations"][0]["toolExecutionNotifications"]
        assert self.WARNING in notes[0]["message"]["text"]
        assert self.WARNING in page.read_text()
        run("compare", target, target, "--model", arm_model, "--html", page)
        assert self.WARNING in page.read_text()

    def test_hits_that_the_model_cannot_read(self, run: Graphkin, tmp_path: Path):
        """The query is for a processor that it knows, and so is none of what the library lists."""
        files = search_model(words=mnemonics(), processors=["x86-64"]).files
        folder, library = tmp_path / "x86", tmp_path / "x86.kin"
        write_all_atomically({folder / name: content for name, content in files.items()})
        run("index", library, samples.ELF / "gateway-aarch64", "--model", folder)
        warning = "was trained on code for x86-64, not for aarch64"
        for outcome in (
            run("search", library, f"{KNOWN}:{NAME}", "--json"),
            run("library", library, "stats", "--json"),
        ):
            assert outcome.code == 0, outcome.err
            assert outcome.err.count(warning) == 1
            assert [warning in line for line in json.loads(outcome.out)["warnings"]] == [True]

    def test_a_model_without_a_record_is_not_trusted_silently(self, run: Graphkin, library: Path):
        outcome = run("scan", library, KNOWN, "--json")
        assert "does not say which processors it was trained on" in outcome.err
        (warning,) = json.loads(outcome.out)["warnings"]
        assert warning in outcome.err


class TestLibrary:
    def test_stats_either_way_round(self, run: Graphkin, library: Path):
        first = json.loads(run("library", library, "stats", "--json").out)
        assert json.loads(run("library", "stats", library, "--json").out) == first
        assert first["entries"] == first["architectures"]["x86-64"]
        text = run("library", library, "stats").out
        assert f"{first['entries']}" in text

    def test_list_remove_verify_compact(self, run: Graphkin, library: Path):
        everything = lines(run("library", library, "list", "--json").out)
        total = len(everything)
        assert len(run("library", library, "list", "--limit", 3).out.splitlines()) == 3
        tried = json.loads(
            run("library", library, "remove", "--tag", "cve", "--dry-run", "--json").out
        )
        assert (tried["removed"], tried["matching"], tried["total"]) == (0, 1, total)
        gone = json.loads(run("library", library, "remove", "--tag", "cve", "--json").out)
        assert (gone["removed"], gone["total"]) == (1, total - 1)
        assert run("library", library, "remove").code == 12
        assert run("library", library, "compact").code == 0
        verified = run("library", library, "verify", "--json")
        assert verified.code == 0
        assert json.loads(verified.out)["entries"] == total - 1

    def test_a_library_that_is_not_there_is_not_a_damaged_one(self, run: Graphkin, tmp_path: Path):
        absent = tmp_path / "absent.kin"
        verified, counted = (run("library", absent, verb) for verb in ("verify", "stats"))
        assert verified == counted
        assert f"there is no library {absent}" in verified.err
        assert verified.out == ""
        assert list(tmp_path.iterdir()) == []

    def test_a_file_that_is_not_a_library_is_a_damaged_one(self, run: Graphkin, tmp_path: Path):
        path = tmp_path / "broken.kin"
        path.write_bytes(b"no library" * 1000)
        verified = run("library", path, "verify")
        assert verified.code == 11
        assert "0 functions checked, 1 damaged" in verified.out

    def test_blocks_choose_functions(self, run: Graphkin, library: Path):
        sizes = [item["blocks"] for item in lines(run("library", library, "list", "--json").out)]
        least, most = sorted(sizes)[2], sorted(sizes)[-3]
        assert (
            sizes.count(least) < len([size for size in sizes if least <= size <= most]) < len(sizes)
        )
        for text, low, high in (
            (f"{least}-{most}", least, most),
            (f"{least}-", least, max(sizes)),
            (f"{least}", least, least),
        ):
            part = run("library", library, "list", "--json", "--blocks", text)
            expected = [size for size in sizes if low <= size <= high]
            assert [item["blocks"] for item in lines(part.out)] == expected

    @pytest.mark.parametrize("text", ["many", "-5", "5-4", "5-6-7", "", "5.0"])
    def test_blocks_that_are_refused(self, run: Graphkin, library: Path, text: str):
        outcome = run("library", library, "list", f"--blocks={text}")
        assert (outcome.code, outcome.out) == (12, "")
        assert outcome.err.startswith(
            ("graphkin: --blocks takes a number", "graphkin: --blocks 5-4 ")
        )

    @pytest.mark.parametrize(
        "verb",
        [["search"], ["scan"], ["library", "list"], ["library", "tag"], ["library", "remove"]],
    )
    def test_filters_are_the_same_everywhere(self, run: Graphkin, verb: list[str]):
        names = [
            "function",
            "binary",
            "architecture",
            "compiler",
            "build",
            "tag",
            "blocks",
        ]
        text = run(*verb, "--help").out
        panel = text[text.index("Functions of the library") :]
        assert [word for word in panel.split() if word.startswith("--")] == [
            f"--{name}" for name in names
        ]

    def test_a_folder_of_graphs_is_for_both_sides_of_a_copy(
        self, run: Graphkin, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        """Either may be on Milvus, with its graphs where they were not at its creation."""
        opened: list[tuple[str, object]] = []

        class Watched(SqliteEngine):
            @classmethod
            def open(cls, url: Any, *, graphs_folder: Any = None) -> Any:
                opened.append((Path(url).name, graphs_folder))
                return super().open(url)

        monkeypatch.setattr("graphkin.library.library.engine_of", lambda url: Watched)
        other = tmp_path / "other.kin"
        for _ in range(2):
            outcome = run("library", "copy", library, other, "--graphs-folder", tmp_path)
            assert outcome.code == 0, outcome.err
        assert opened == [(name, tmp_path) for name in ("library.kin", "library.kin", "other.kin")]

    def test_tags_are_added_and_changed(self, run: Graphkin, library: Path):
        outcome = run(
            "library",
            library,
            "tag",
            "--function",
            NAME,
            "--add-tag",
            "cve=X",
            "--add-tag",
            "seen=yes",
        )
        assert outcome.code == 0, outcome.err
        (entry,) = lines(run("library", library, "list", "--tag", "seen", "--json").out)
        assert entry["tags"] == {"cve": "X", "seen": "yes"}
        assert run("library", library, "verify").code == 0
        told = run("library", library, "tag", "--tag", "cve=X", "--add-tag", "cve=Y", "--json").out
        assert json.loads(told)["tagged"] == 1
        assert run("library", library, "tag", "--function", NAME).code == 12
        assert run("library", library, "tag", "--add-tag", "a=b").code == 12
        outcome = run("library", library, "tag", "--function", NAME, "--add-tag", "seen")
        assert (outcome.code, "--add-tag takes KEY=VALUE" in outcome.err) == (12, True)

    def test_damage_is_named(self, run: Graphkin, library: Path):
        import sqlite3

        with sqlite3.connect(library) as connection:
            connection.execute("UPDATE graphs SET content = zeroblob(length(content)) WHERE id = 1")
        connection.close()
        outcome = run("library", library, "verify")
        assert outcome.code == 11
        assert "1 damaged" in outcome.out

    def test_copy_and_go_on(self, run: Graphkin, library: Path, tmp_path: Path):
        other = tmp_path / "copy.kin"
        first = json.loads(run("library", "copy", library, other, "--json").out)
        assert first["copied"] == first["total"] > 0
        again = json.loads(run("library", "copy", library, other, "--json").out)
        assert again["copied"] == 0
        target = f"{KNOWN}:{NAME}"
        searched = [
            results(run("search", item, target, "--json", "--rerank", 5))
            for item in (library, other)
        ]
        assert searched[0] == searched[1]

    def test_mistakes(self, run: Graphkin, tmp_path: Path):
        assert run("library", tmp_path / "absent.kin", "stats").code == 11
        assert run("library", tmp_path, "stats").code == 12
        (tmp_path / "foreign.kin").write_text("hello")
        assert run("library", tmp_path / "foreign.kin", "verify", "--json").code == 11
        outcome = run("library", tmp_path / "foreign.kin", "stats")
        assert outcome.code == 11
        assert "foreign.kin" in outcome.err
