"""Exports of other memory systems: read piece by piece, told apart, and with nothing lost without a name."""

import json
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memplane.client import MemplaneClientError
from memplane.client.peers import (
    Conversion,
    ConvertedRecord,
    ImportMap,
    LeftOut,
    Peer,
    convert_records,
    documents,
    peer_of,
)
from support.peer_exports import archive, export, written

NOW = datetime(2026, 11, 23, tzinfo=UTC)
MB = 1 << 20


def lines(path: Path, peer: Peer, category: str | None = "event", **names: Any) -> list[ConvertedRecord]:  # noqa: ANN401 - of a map
    by = Conversion(NOW, {"event", "goals"}, category, ImportMap(**names))
    return list(convert_records(peer, documents(path), by))


@pytest.mark.parametrize(
    ("name", "peer"),
    [
        ("mem0", Peer.MEM0), ("zep", Peer.ZEP), ("zep_python", Peer.ZEP), ("graphiti", Peer.ZEP),
        ("hindsight", Peer.HINDSIGHT),
    ],
)  # fmt: skip
def test_an_export_is_recognised_by_its_records(tmp_path: Path, name: str, peer: Peer) -> None:
    assert peer_of(export(tmp_path, name)) is peer


def test_an_archive_is_recognised_and_other_documents_are_not(tmp_path: Path) -> None:
    assert peer_of(archive(tmp_path)) is Peer.HINDSIGHT
    own = {"record": "memory", "category": "event", "content": "Ours."}
    chat = {"messages": [{"role": "user", "content": "Hello."}]}
    for document in (own, chat, [1, 2], {"results": []}, {"value": {"memory": "deep"}}):
        assert peer_of(written(tmp_path, document)) is None


@pytest.mark.parametrize("form", ["list", "object", "pages"])
def test_a_large_export_is_never_in_memory_as_a_whole(tmp_path: Path, form: str) -> None:
    file = tmp_path / "large.json"
    records = [json.dumps({"id": str(n), "memory": f"{n} " + "word " * 1_000}) for n in range(6_000)]
    with file.open("w") as out:
        match form:
            case "list":
                out.write("[" + ",\n".join(records) + "]")
            case "object":
                out.write('{"count": 6000, "results": [' + ",".join(records) + "]}")
            case _:
                out.writelines(f'{{"results": [{record}]}}\n' for record in records)
    del records
    assert file.stat().st_size > 25 * MB
    by = Conversion(NOW, {"event"}, "event")
    tracemalloc.start()
    try:
        assert peer_of(file) is Peer.MEM0
        assert sum(each.line is not None for each in convert_records(Peer.MEM0, documents(file), by)) == 6_000
        assert tracemalloc.get_traced_memory()[1] < 10 * MB
    finally:
        tracemalloc.stop()


def test_what_stands_around_a_list_counts_wherever_it_stands(tmp_path: Path) -> None:
    message = {"uuid": "m", "role": "user", "content": "Hello."}
    for document in ({"messages": [message], "thread_id": "t"}, {"thread_id": "t", "messages": [message]}):
        for name in ("a.json", "a.jsonl"):
            file = written(tmp_path, document, name)
            if name.endswith("l"):
                file.write_text(file.read_text() + "\n" + file.read_text())
            made = lines(file, Peer.ZEP)
            assert {each.line and each.line["thread_id"] for each in made} == {"t"}
    (made,) = lines(written(tmp_path, [message]), Peer.ZEP)
    assert made.code is LeftOut.NO_THREAD
    (made,) = lines(written(tmp_path, [message]), Peer.ZEP, thread="t")
    assert made.line is not None


def test_times_that_cannot_be_read_are_named_and_the_words_kept(tmp_path: Path) -> None:
    file = written(tmp_path, [{"id": "1", "memory": "Kept.", "created_at": "yesterday", "updated_at": 7}])
    (made,) = lines(file, Peer.MEM0)
    assert made.line is not None
    assert ("event_time" in made.line, sorted(made.unmapped)) == (False, ["created_at", "updated_at"])


def test_a_long_id_is_shortened_and_stays_its_own(tmp_path: Path) -> None:
    items = [{"namespace": ["n" * 300], "key": f"k{n}", "value": {"text": "Kept."}} for n in (1, 1, 2)]
    names = [each.line and each.line["external_id"] for each in lines(written(tmp_path, items), Peer.LANGGRAPH)]
    assert (len(set(names)), max(len(str(name)) for name in names) <= 255, names[0] == names[1]) == (2, True, True)


def test_a_deep_or_foreign_document_is_refused_and_not_followed(tmp_path: Path) -> None:
    file = tmp_path / "deep.json"
    for beginning, end in (('{"results": [', "]}"), ("[", "]")):
        file.write_text(beginning + '{"a": ' * 100_000 + "1" + "}" * 100_000 + end)
        with pytest.raises(MemplaneClientError) as caught:
            lines(file, Peer.MEM0)
        assert caught.value.code == "invalid_export"
    file.write_text('{"other": [' + "1," * 2_500_000 + "1]}")
    with pytest.raises(MemplaneClientError) as caught:
        lines(file, Peer.MEM0)
    assert caught.value.code == "unknown_export"


def test_an_expired_item_is_left_out_and_a_lasting_one_ends_when_it_did(tmp_path: Path) -> None:
    item = {"namespace": ["n"], "key": "k", "value": {"text": "Kept."}}
    ends = ["2026-11-22T00:00:00+00:00", "2026-11-24T00:00:00+00:00"]
    gone, kept = lines(written(tmp_path, [item | {"expires_at": end} for end in ends]), Peer.LANGGRAPH)
    assert gone.code is LeftOut.EXPIRED
    assert kept.line is not None
    assert kept.line["expires_at"] == ends[1]
