"""The client's one error tree: problem documents, and failures to get an answer at all."""

from collections.abc import Mapping

from pydantic import ValidationError

from memplane.contracts.base import Problem


class MemplaneClientError(Exception):
    """Base of every error that the client raises on purpose.

    Attributes:
        code: stable name of the problem, for programs: the server's own, or one of the client's (``invalid_request``,
            ``unreachable``, ``timeout``, ``unexpected_answer``).
        detail: what was wrong, where, and what to do, for a person.
        status: the HTTP status; ``None`` when no answer came, or nothing was sent.
        extra: further members of the problem document.
        retry_after: seconds after which the server asks to be tried again, where it said so.
    """

    def __init__(
        self,
        code: str,
        detail: str,
        status: int | None = None,
        extra: Mapping[str, object] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(code, detail, status, extra, retry_after)
        self.code = code
        self.detail = detail
        self.status = status
        self.extra: Mapping[str, object] = dict(extra or {})
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}"


class Invalid(MemplaneClientError):
    """The request cannot be understood or accepted as it is; the client itself refuses what breaks the contract."""


class TooLarge(Invalid):
    """The request is larger than the server takes."""


class Unauthenticated(MemplaneClientError):
    """The key does not hold."""


class Forbidden(MemplaneClientError):
    """The key, its agent, its trust or its users do not allow this; ``code`` says which."""


class NotFound(MemplaneClientError):
    """Absent, or not the caller's: the two give the same answer."""


class Conflict(MemplaneClientError):
    """The state of the record does not allow this."""


class VersionConflict(Conflict):
    """The record changed since the version that the caller holds."""


class Unavailable(MemplaneClientError):
    """There was no answer for now; trying again later may help."""


class RateLimited(Unavailable):
    """This key asks too often."""


class Unreachable(Unavailable):
    """The server could not be reached, or did not answer in time (``timeout``). A write may have taken effect."""


class ServerFailed(MemplaneClientError):
    """The server could not do this; its log says why."""


class UnexpectedAnswer(MemplaneClientError):
    """What answered is no Memplane server, or one that this client does not understand."""


_BY_STATUS: Mapping[int, type[MemplaneClientError]] = {
    400: Invalid,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    408: Unavailable,
    409: Conflict,
    412: VersionConflict,
    413: TooLarge,
    422: Invalid,
    429: RateLimited,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}


def error_of(status: int, body: bytes, retry_after: float | None = None) -> MemplaneClientError:
    """The error for an answer that is no success.

    Args:
        status: its HTTP status.
        body: a problem document, or whatever else a proxy between may have sent.
        retry_after: seconds, where the answer named them.
    """
    kind = _BY_STATUS.get(status, ServerFailed if status >= 500 else UnexpectedAnswer)
    try:
        told = Problem.model_validate_json(body)
    except ValidationError:
        known = kind if status >= 500 or status == 429 else UnexpectedAnswer
        told_by = "something between here and the server" if status in {502, 503, 504} else "no Memplane server"
        detail = f"HTTP {status} without a problem document: this is the answer of {told_by}; check the URL"
        return known("unexpected_answer", detail, status, None, retry_after)
    return kind(told.code, told.detail, status, told.model_extra, retry_after)
