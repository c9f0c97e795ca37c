"""What is wrong with the policy files, collected so that an operator sees all of it at once."""

from dataclasses import asdict, dataclass

from memplane.domain.errors import PolicyError


@dataclass(frozen=True, slots=True)
class PolicyProblem:
    """One mistake in a policy file.

    Attributes:
        file: the file's name, without its folder.
        line: counted from 1; 1 when the file as a whole is meant.
        key: dotted path of the key, such as ``categories.system[2].context``; empty for the file as a whole.
        message: what is wrong and what is accepted.
    """

    file: str
    line: int
    key: str
    message: str

    def __str__(self) -> str:
        """``file:line: key: message``."""
        where = f"{self.file}:{self.line}:"
        return f"{where} {self.key}: {self.message}" if self.key else f"{where} {self.message}"


class Report:
    """The problems found so far."""

    def __init__(self) -> None:
        self._problems: list[PolicyProblem] = []

    def __len__(self) -> int:
        return len(self._problems)

    def add(self, problem: PolicyProblem) -> None:
        """Take note of a problem; reading goes on."""
        self._problems.append(problem)

    def raise_if_any(self) -> None:
        """End the reading.

        Raises:
            PolicyError: there are problems; its detail has one line for each, by file and line, and
                ``extra["errors"]`` lists them as mappings of ``file``, ``line``, ``key`` and ``message``.
        """
        if self._problems:
            found = sorted(self._problems, key=lambda problem: (problem.file, problem.line))
            raise PolicyError("\n".join(map(str, found)), errors=[asdict(problem) for problem in found])
