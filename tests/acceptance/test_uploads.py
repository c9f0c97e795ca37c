"""Bodies on their way in: each has its time, is paid for as it arrives, and holds no more than its share."""

import json
import time
from collections import Counter
from collections.abc import Callable
from typing import ClassVar

import pytest

from support.callers import USER, Caller, Tenant, refused
from support.serving import RunningServer
from support.sockets import Raw, connections, until

Start = Callable[..., RunningServer]
MEMORIES = "/v1/memories"
MEMORY = {"user_id": USER, "category": "tasks", "content": "The hall is booked."}
CHUNKED = "Transfer-Encoding: chunked"
PART = b" " * 65_536


def begun(server: RunningServer, caller: Caller, megabytes: float, *, path: str = MEMORIES) -> Raw:
    """A chunked body of which so much is sent, and no end."""
    made = Raw(server.url)
    made.head(path, caller.credential, CHUNKED)
    for _ in range(int(megabytes * 16)):
        if made.answered(0) or not made.chunk(PART):
            break
    return made


class TestTime:
    """A body has to arrive in its time."""

    def test_one_that_does_not_arrive_is_given_up(self, start_server: Start) -> None:
        server = start_server(body_seconds=0.5)
        caller = Tenant(server).caller()
        for lines in ([CHUNKED], ["Content-Length: 100"]):
            with connections(server.url, 1) as (slow,):
                slow.head(MEMORIES, caller.credential, *lines)
                status, problem = slow.answer()
                assert (status, problem["code"]) == (408, "request_timeout")
                assert slow.ends()
        assert caller.remember("The hall is booked.")

    def test_one_that_arrives_drop_by_drop_is_given_up_too(self, start_server: Start) -> None:
        server = start_server(body_seconds=1)
        caller = Tenant(server).caller()
        with connections(server.url, 1) as (slow,):
            slow.head(MEMORIES, caller.credential, CHUNKED)
            began = time.monotonic()
            while not slow.answered(0.1):
                slow.chunk(b" ")
            assert slow.answer()[1]["code"] == "request_timeout"
            assert time.monotonic() - began >= 1

    def test_a_slow_one_within_its_time_is_taken(self, start_server: Start) -> None:
        """The control: somebody honest on a bad line."""
        server = start_server(body_seconds=60)
        caller = Tenant(server).caller()
        body = json.dumps(MEMORY).encode()
        with connections(server.url, 1) as (slow,):
            slow.head(MEMORIES, caller.credential, CHUNKED)
            for start in range(0, len(body), 10):
                slow.chunk(body[start : start + 10])
                assert not slow.answered(0.15)
            slow.chunk(b"")
            status, written = slow.answer()
            assert (status, written["outcome"]) == (201, "created")

    def test_what_was_answered_is_not_read_for_ever(self, start_server: Start, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("memplane.entrypoints.connections.LINGER_SECONDS", 0.5)
        server = start_server()
        with connections(server.url, 1) as (endless,):
            endless.head(MEMORIES, "mp_nobody_wrong", CHUNKED)
            assert endless.answer()[1]["code"] == "unauthenticated"
            until(lambda: not endless.chunk(PART))


class TestTokens:
    """A body without a declared length is paid for as it arrives."""

    def test_an_unfinished_one_is_paid_for(self, start_server: Start) -> None:
        server = start_server(rate_per_second=0.01, rate_burst=60)
        tenant = Tenant(server)
        caller, other = tenant.caller(), tenant.caller()
        unfinished = begun(server, caller, 0.25)  # 32 tokens
        until(lambda: server.wired.uploads.bytes_held >= 2**18)
        answered = 0
        while caller.query("hall").status_code == 200:
            answered += 1
        assert answered <= 60 - 32
        assert other.query("hall").status_code == 200
        unfinished.close()

    def test_one_that_costs_more_than_there_is_is_refused_on_its_way(self, start_server: Start) -> None:
        server = start_server(rate_per_second=0.01, rate_burst=60)
        caller = Tenant(server).caller()
        for _ in range(40):
            assert caller.query("hall").status_code == 200
        with connections(server.url, 1) as (sender,):
            sender.head(MEMORIES, caller.credential, CHUNKED)
            while not sender.answered(0.02):
                sender.chunk(PART)
            assert sender.answer()[1]["code"] == "rate_limited"
        until(lambda: server.wired.uploads.bytes_held == 0)

    def test_one_that_empties_a_full_bucket_is_taken(self, start_server: Start) -> None:
        """The control: as with a declared length, a full bucket pays for whatever may be sent."""
        server = start_server(rate_per_second=0.01, rate_burst=20)
        caller = Tenant(server).caller()
        with connections(server.url, 1) as (sender,):
            sender.head(MEMORIES, caller.credential, CHUNKED)
            for _ in range(16):
                sender.chunk(PART)
            sender.chunk(json.dumps(MEMORY).encode())
            sender.chunk(b"")
            assert sender.answer()[0] == 201


class TestShares:
    """What bodies hold until they are answered."""

    SETTINGS: ClassVar = {"uploads_mb_per_key": 4, "uploads_mb_per_address": 8, "uploads_mb": 12}

    def test_a_key_holds_no_more_than_its_share(self, start_server: Start) -> None:
        server = start_server(**self.SETTINGS)
        tenant, other = Tenant(server), Tenant(server)
        caller, neighbour = tenant.caller(), other.caller()
        told: Counter[object] = Counter()
        with connections(server.url, 0) as made:
            made += [begun(server, caller, 1) for _ in range(12)]
            until(lambda: sum(each.answered(0) for each in made) >= 8)
            assert server.wired.uploads.bytes_held <= 4 * 2**20
            told.update(each.answer()[1]["code"] for each in made if each.answered(0))
            assert set(told) == {"uploads_limited"}
            assert neighbour.remember("The hall is booked.")  # the control
            assert tenant.caller().remember("The hall has a stage.")
            for each in made:
                each.close()
        until(lambda: server.wired.uploads.bytes_held == 0)
        assert caller.remember("The hall has a door.")

    def test_an_unfinished_one_counts_however_small(self, start_server: Start) -> None:
        server = start_server(max_body_bytes=10_000, uploads_mb_per_key=1)
        tenant = Tenant(server)
        caller = tenant.caller()
        with connections(server.url, 17) as made:
            for each in made:
                each.head(MEMORIES, caller.credential, CHUNKED)
                each.chunk(b" ")
            until(lambda: any(each.answered(0) for each in made))
            (late,) = (each for each in made if each.answered(0))
            assert late.answer()[1]["code"] == "uploads_limited"
            assert tenant.caller().query("hall").status_code == 200
        until(lambda: server.wired.uploads.bytes_held == 0)

    def test_keys_of_one_address_share_its_part(self, start_server: Start) -> None:
        server = start_server(**self.SETTINGS)
        tenant = Tenant(server)
        with connections(server.url, 0) as made:
            made += [begun(server, tenant.caller(), 3) for _ in range(4)]
            until(lambda: sum(each.answered(0) for each in made) >= 2)
            assert server.wired.uploads.bytes_held <= 8 * 2**20
            status, problem = next(each for each in made if each.answered(0)).answer()
            assert (status, problem["code"]) == (429, "uploads_limited")
            assert "address" in problem["detail"]
            for each in made:
                each.close()

    def test_the_server_holds_no_more_than_all(self, start_server: Start) -> None:
        server = start_server(uploads_mb_per_key=0, uploads_mb_per_address=0, uploads_mb=6)
        tenant = Tenant(server)
        with connections(server.url, 0) as made:
            made += [begun(server, tenant.caller(), 3) for _ in range(3)]
            until(lambda: any(each.answered(0) for each in made))
            status, problem = next(each for each in made if each.answered(0)).answer()
            assert (status, problem["code"]) == (503, "busy")
            for each in made:
                each.close()
        until(lambda: server.wired.uploads.bytes_held == 0)

    def test_nobody_without_a_key_has_a_body_read(self, start_server: Start) -> None:
        server = start_server(**self.SETTINGS)
        with connections(server.url, 20) as made:
            for each in made:
                each.head(MEMORIES, "mp_nobody_wrong", CHUNKED)
                each.chunk(b" ")
            for each in made:
                assert each.answer()[1]["code"] == "unauthenticated"
            assert server.wired.uploads.bytes_held == 0


def test_a_large_body_by_the_side_of_many_small_ones(start_server: Start) -> None:
    """The control: what is whole gives its share back with its answer."""
    server = start_server(uploads_mb_per_key=4)
    caller = Tenant(server).caller()
    turns = [{"user_id": USER, "thread_id": "t", "role": "user", "text": "hall " * 200}] * 1_000
    for _ in range(3):
        assert caller.post("/v1/turns:batch", {"turns": turns}).status_code == 201
        assert caller.query("hall").status_code == 200
    assert server.wired.uploads.bytes_held == 0
    refused(caller.post(MEMORIES, {"content": "x" * 5_000_000}), 413, "body_too_large")
