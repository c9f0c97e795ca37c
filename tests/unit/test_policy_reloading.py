"""The policy in force: renewed by good files, kept in spite of wrong ones."""

import os
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from memplane.adapters.policy import PolicyFiles, load_policy, loading, reloading
from memplane.domain.errors import PolicyError
from memplane.domain.policy.policy import Policy
from unit.small_policy import SMALL, TRUST, WRITING, write_small


def rewrite(folder: Path, file: str, text: str) -> None:
    """Replace a file as an editor does: the new content appears at once."""
    fresh = folder / f".{file}.new"
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(folder / file)


LONGER = SMALL[WRITING].replace("max_list_items: 10", "max_list_items: 11")
WRONG = SMALL[WRITING].replace("max_list_items: 10", "max_list_items: 0")


@pytest.fixture
def files(tmp_path: Path) -> PolicyFiles:
    """The small policy in force."""
    return PolicyFiles(write_small(tmp_path))


def test_a_wrong_folder_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(PolicyError):
        PolicyFiles(tmp_path)
    assert PolicyFiles(write_small(tmp_path)).folder == tmp_path


def test_reload_takes_new_content(files: PolicyFiles) -> None:
    before = files.current
    assert files.reload() == before
    rewrite(files.folder, WRITING, LONGER)
    assert files.current.writing.max_list_items == 10
    assert files.reload().writing.max_list_items == 11
    assert files.current.writing.max_list_items == 11
    assert files.current.digest != before.digest
    assert files.maybe_reload() is None


def test_reload_of_wrong_files_raises_and_keeps_the_policy(files: PolicyFiles) -> None:
    before = files.current
    rewrite(files.folder, WRITING, WRONG)
    with pytest.raises(PolicyError) as caught:
        files.reload()
    assert files.current is before
    assert files.last_error is caught.value
    rewrite(files.folder, WRITING, SMALL[WRITING])
    assert files.reload() == before
    assert files.last_error is None


def test_nothing_is_read_while_nothing_changes(files: PolicyFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[Path] = []

    def load(folder: Path) -> tuple[Policy, Mapping[str, bytes]]:
        reads.append(folder)
        return files.current, {}

    monkeypatch.setattr(reloading, "read_policy", load)
    assert [files.maybe_reload() for _ in range(3)] == [None, None, None]
    assert reads == []
    rewrite(files.folder, WRITING, LONGER)
    files.maybe_reload()
    assert reads == [files.folder]


def test_a_change_is_taken_once(files: PolicyFiles) -> None:
    rewrite(files.folder, WRITING, LONGER)
    renewed = files.maybe_reload()
    assert renewed is files.current
    assert renewed.writing.max_list_items == 11
    assert files.maybe_reload() is None


def test_a_change_of_the_same_size_and_time_is_taken(files: PolicyFiles) -> None:
    target = files.folder / WRITING
    status = target.stat()
    rewrite(files.folder, WRITING, LONGER)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert target.stat().st_size == status.st_size
    assert files.maybe_reload() is not None


def test_a_touched_file_is_no_new_policy(files: PolicyFiles) -> None:
    before = files.current
    rewrite(files.folder, WRITING, SMALL[WRITING])
    assert files.maybe_reload() is None
    assert files.current == before


def test_a_wrong_change_keeps_the_policy_and_says_why(files: PolicyFiles) -> None:
    before = files.current
    rewrite(files.folder, WRITING, WRONG)
    assert files.maybe_reload() is None
    assert files.current is before
    assert files.last_error is not None
    assert files.last_error.detail.startswith(f"{WRITING}:4: limits.max_list_items: ")
    assert files.maybe_reload() is None
    assert files.last_error is not None, "the error stays until the folder is right"
    rewrite(files.folder, WRITING, SMALL[WRITING])
    assert files.maybe_reload() is None, "the same content as before is no new policy"
    assert files.last_error is None


def test_an_unknown_file_that_appears_is_seen(files: PolicyFiles) -> None:
    (files.folder / "category.yaml").write_text("", encoding="utf-8")
    assert files.maybe_reload() is None
    assert files.last_error is not None
    assert files.last_error.detail.startswith("category.yaml:1: unknown policy file")


def test_a_link_to_nothing_hides_no_other_change(files: PolicyFiles) -> None:
    (files.folder / TRUST).unlink()
    (files.folder / TRUST).symlink_to(files.folder / "gone")
    assert files.maybe_reload() is None
    assert files.last_error is not None
    (files.folder / TRUST).unlink()
    rewrite(files.folder, TRUST, SMALL[TRUST])
    rewrite(files.folder, WRITING, LONGER)
    assert files.maybe_reload() is not None
    assert files.last_error is None


def test_a_folder_that_goes_and_comes_back(files: PolicyFiles) -> None:
    before = files.current
    away = files.folder.with_name("away")
    files.folder.rename(away)
    assert files.maybe_reload() is None
    assert files.last_error is not None
    assert files.current is before
    away.rename(files.folder)
    assert files.maybe_reload() is None
    assert files.last_error is None


def test_a_folder_that_changes_while_it_is_read_is_read_again(
    files: PolicyFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files.current

    def slow_load(folder: Path) -> tuple[Policy, Mapping[str, bytes]]:
        policy = load_policy(folder)
        rewrite(folder, TRUST, SMALL[TRUST].replace("default_write: social", "default_write: none"))
        return policy, {}

    rewrite(files.folder, WRITING, LONGER)
    monkeypatch.setattr(reloading, "read_policy", slow_load)
    assert files.maybe_reload() is None
    assert files.current is before
    monkeypatch.setattr(reloading, "read_policy", loading.read_policy)
    renewed = files.maybe_reload()
    assert renewed is not None
    assert renewed.writing.max_list_items == 11


def test_several_threads_agree(files: PolicyFiles) -> None:
    rewrite(files.folder, WRITING, LONGER)
    start = threading.Barrier(4)
    renewed: list[Policy | None] = []

    def check() -> None:
        start.wait()
        renewed.append(files.maybe_reload())

    threads = [threading.Thread(target=check) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [policy is not None for policy in renewed].count(True) == 1
    assert files.current.writing.max_list_items == 11
