"""From a folder of policy files to one policy."""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from memplane.adapters.policy.categories import read_categories
from memplane.adapters.policy.consent import read_consent, refuse_unplaced
from memplane.adapters.policy.document import MAX_BYTES, parse
from memplane.adapters.policy.lifecycle import read_lifecycle
from memplane.adapters.policy.merge import read_merge
from memplane.adapters.policy.ranking import read_ranking
from memplane.adapters.policy.report import PolicyProblem, Report
from memplane.adapters.policy.trust import read_trust
from memplane.adapters.policy.value import Value, did_you_mean
from memplane.adapters.policy.workers import read_workers
from memplane.adapters.policy.writing import read_writing
from memplane.domain.errors import PolicyError
from memplane.domain.policy.policy import Policy

CATEGORIES = "categories.yaml"
TRUST = "trust.yaml"
WRITING = "writing.yaml"
RANKING = "ranking.yaml"
MERGE = "merge.yaml"
CONSENT = "consent.yaml"
LIFECYCLE = "lifecycle.yaml"
WORKERS = "workers.yaml"

KNOWN_FILES = (CATEGORIES, TRUST, WRITING, RANKING, MERGE, CONSENT, LIFECYCLE, WORKERS)
"""The files of a policy: all of them must be in the folder, and no other YAML file may be."""

_YAML_SUFFIXES = frozenset({".yaml", ".yml"})
_PACKAGE = Path(__file__).resolve().parents[2]


def load_policy(folder: Path) -> Policy:
    """Read and check a policy folder.

    Args:
        folder: holds ``KNOWN_FILES``. Folders within it, and names that begin with a dot, are not looked at.

    Returns:
        The policy; its digest is that of ``digest_of`` over the bytes that were read.

    Raises:
        PolicyError: one or more mistakes. The detail has a line ``file:line: key: message`` for each, and
            ``extra["errors"]`` lists them as mappings of ``file``, ``line``, ``key`` and ``message``.
    """
    return read_policy(folder)[0]


def read_policy(folder: Path) -> tuple[Policy, Mapping[str, bytes]]:
    """The same, with the bytes of each file by its name.

    Raises:
        PolicyError: as :func:`load_policy`.
    """
    report = Report()
    contents = _read(folder, report)
    return _policy(contents, report), contents


def check_policy(contents: Mapping[str, bytes]) -> Policy:
    """The policy that files of these contents make.

    Raises:
        PolicyError: as :func:`load_policy`.
    """
    report = Report()
    for name in sorted(set(contents) - set(KNOWN_FILES)):
        report.add(_unknown(name))
    return _policy({name: contents[name] for name in KNOWN_FILES if name in contents}, report)


def _policy(contents: Mapping[str, bytes], report: Report) -> Policy:
    roots = {file: _root(file, contents, report) for file in KNOWN_FILES}
    consent = read_consent(roots[CONSENT])
    known = not len(report)
    kinds = read_categories(roots[CATEGORIES], consent.sensitive if known else None)
    if known and not len(report):
        refuse_unplaced(roots[CONSENT], kinds.sensitive_fields)
    policy = Policy(
        categories=kinds.categories,
        allowlists=kinds.allowlists,
        turns_category=kinds.turns_category,
        extraction=kinds.extraction,
        shared=kinds.shared,
        trust=read_trust(roots[TRUST]),
        writing=read_writing(roots[WRITING]),
        rankings=read_ranking(roots[RANKING]),
        merging=read_merge(roots[MERGE]),
        consent=consent,
        lifecycle=read_lifecycle(roots[LIFECYCLE], kinds.categories),
        workers=read_workers(roots[WORKERS]),
        digest=digest_of(contents),
    )
    report.raise_if_any()
    return policy


def digest_of(contents: Mapping[str, bytes]) -> str:
    """The name of exactly this content.

    ``sha256:`` and the hexadecimal SHA-256 over, for each file in the order of their names: the name in UTF-8, a zero
    byte, the number of bytes in decimal, a zero byte, the bytes.

    Args:
        contents: bytes by file name.
    """
    digest = sha256()
    for file in sorted(contents):
        digest.update(f"{file}\0{len(contents[file])}\0".encode())
        digest.update(contents[file])
    return f"sha256:{digest.hexdigest()}"


def yaml_files(folder: Path) -> tuple[Path, ...]:
    """Everything in the folder that is named like a YAML file, by name; known to a policy or not.

    Raises:
        OSError: the folder cannot be listed.
    """
    return tuple(
        sorted(
            path for path in folder.iterdir() if path.suffix.lower() in _YAML_SUFFIXES and not path.name.startswith(".")
        )
    )


def shipped_policies() -> Path:
    """The folder of the policies that come with Memplane: in an installed package, or else in the source tree.

    Raises:
        PolicyError: neither is there.
    """
    for folder in (_PACKAGE / "_data" / "policies", _PACKAGE.parent.parent / "policies"):
        if folder.is_dir():
            return folder
    raise PolicyError("the shipped policies are missing from this installation: install it again, or name a folder")


def _read(folder: Path, report: Report) -> dict[str, bytes]:
    """The known files' bytes; what is missing, unreadable or unknown is reported."""
    try:
        there = {path.name: path for path in yaml_files(folder)}
    except OSError as error:
        report.add(PolicyProblem(folder.name, 1, "", f"the policy folder cannot be read: {error.strerror}"))
        return {}
    for name in there:
        if name not in KNOWN_FILES:
            report.add(_unknown(name))
    contents = {}
    for file in KNOWN_FILES:
        if file not in there:
            report.add(PolicyProblem(file, 1, "", f"missing; a policy has the files {', '.join(KNOWN_FILES)}"))
            continue
        try:
            with there[file].open("rb") as stream:
                contents[file] = stream.read(MAX_BYTES + 1)
        except OSError as error:
            report.add(PolicyProblem(file, 1, "", f"cannot be read: {error.strerror}"))
    return contents


def _unknown(name: str) -> PolicyProblem:
    hint = did_you_mean(name, KNOWN_FILES)
    return PolicyProblem(name, 1, "", f"unknown policy file;{hint} accepted: {', '.join(KNOWN_FILES)}")


def _root(file: str, contents: Mapping[str, bytes], report: Report) -> Value:
    """The top of a file, with no node when there is nothing to read; the reason is in the report then."""
    node = parse(file, contents[file], report) if file in contents else None
    return Value(report=report, file=file, key="", line=1, node=node)
