"""The one error tree. Each error has a stable ``code``; entrypoints map codes to their own status."""

from collections.abc import Mapping
from typing import ClassVar


class MemplaneError(Exception):
    """Base of every error that Memplane raises on purpose.

    Attributes:
        code: stable machine-readable name, part of the public contract.
        detail: what was wrong, where, and what to do, for a person.
        extra: further members of the answer (names, limits); never secrets or foreign data.
    """

    code: ClassVar[str] = "internal_error"

    def __init__(self, detail: str, **extra: object) -> None:
        super().__init__(detail)
        self.detail = detail
        self.extra: Mapping[str, object] = extra


class InvalidRequest(MemplaneError):
    """The request cannot be understood or accepted as it is."""

    code = "invalid_request"


class InvalidText(InvalidRequest):
    """Text holds something that cannot be stored (NUL, lone surrogate) or is empty."""

    code = "invalid_text"


class UndeclaredType(InvalidRequest):
    """A value of a type that the checkpointer was not told of: read back it would be something else."""

    code = "undeclared_type"


class WritingConstraintViolated(InvalidRequest):
    """A memory's text breaks the writing rules of its type."""

    code = "writing_constraint"


class UnknownSource(InvalidRequest):
    """A source is no turn or memory that the writer may read."""

    code = "unknown_source"


class PersonalDataRefused(InvalidRequest):
    """The text holds personal data of a kind that the policy keeps out of the category."""

    code = "personal_data_refused"


class InvalidInterval(InvalidRequest):
    """The end of what is said lies at its beginning, or before it."""

    code = "invalid_interval"


class UnknownCategory(InvalidRequest):
    """A category that the policy does not know."""

    code = "unknown_category"


class CategoryNotShared(InvalidRequest):
    """A category that holds no knowledge about no user."""

    code = "category_not_shared"


class UnknownRanking(InvalidRequest):
    """A ranking profile that the policy does not know."""

    code = "unknown_ranking"


class AmbiguousThread(InvalidRequest):
    """A thread id that more than one of the caller's users has; the user must be named."""

    code = "user_required"


class UnsupportedVersion(InvalidRequest):
    """A file of another version than this server reads."""

    code = "unsupported_version"


class LimitExceeded(InvalidRequest):
    """More than the stated limit was asked for or sent."""

    code = "limit_exceeded"


class AuthenticationRequired(MemplaneError):
    """No credentials, or credentials that do not hold."""

    code = "unauthenticated"


class TenantRemoved(AuthenticationRequired):
    """The tenant was removed, or is being removed: no credentials of it hold."""

    code = "tenant_removed"


class AccessForbidden(MemplaneError):
    """The principal may not do this."""

    code = "forbidden"


class CategoryForbidden(AccessForbidden):
    """A requested category is outside the agent's allowlist."""

    code = "category_forbidden"


class AgentForbidden(AccessForbidden):
    """The key may not speak for the named agent."""

    code = "agent_forbidden"


class UserForbidden(AccessForbidden):
    """The key may not touch the named user."""

    code = "user_forbidden"


class ScopeForbidden(AccessForbidden):
    """The key lacks the scope that this operation needs."""

    code = "scope_forbidden"


class VisibilityForbidden(AccessForbidden):
    """The principal's trust does not reach the named visibility."""

    code = "visibility_forbidden"


class RecordNotFound(MemplaneError):
    """Absent, or not the caller's: the two give the same answer."""

    code = "not_found"


class StateConflict(MemplaneError):
    """The state of the record does not allow this."""

    code = "conflict"


class VersionMismatch(StateConflict):
    """The record changed since the version that the caller holds."""

    code = "version_conflict"


class StaleCheckpoint(StateConflict):
    """Another writer has continued the thread since this one read it; stored, it would fork the lineage."""

    code = "stale_checkpoint"


class CheckpointMismatch(StateConflict):
    """A checkpoint holds a value that its declared type no longer accepts."""

    code = "checkpoint_mismatch"


class CheckpointNeeded(StateConflict):
    """A checkpoint that would stay cannot be read without one that would go."""

    code = "checkpoint_needed"


class OutOfOrder(StateConflict):
    """The request that this one comes after was not carried out."""

    code = "out_of_order"


class ValueRejected(StateConflict):
    """A person rejected or erased this value: it is not stored again, whoever says it."""

    code = "value_rejected"


class UserErased(StateConflict):
    """The user is being erased, or was since the request came: nothing of it is stored."""

    code = "user_erased"


class UserMerged(StateConflict):
    """The user was merged into another one, whose name is to be used from now on."""

    code = "user_merged"


class ProposalExpired(StateConflict):
    """Nobody decided on the proposal in time: it applies nothing any more."""

    code = "proposal_expired"


class ProposalOutdated(StateConflict):
    """The proposal's words state another sensitive field besides, and that one was decided otherwise since."""

    code = "proposal_outdated"


class LessTrustedWords(StateConflict):
    """The change leaves words of a less trusted writer in a memory that would take the caller's authority."""

    code = "less_trusted_words"


class AlreadyDecided(StateConflict):
    """The opposite was decided on the proposal before."""

    code = "already_decided"


class ConsentRequired(StateConflict):
    """The change would take a sensitive field of the profile away without a word of the person."""

    code = "consent_required"


class NotAnAgreement(InvalidRequest):
    """The turn does not acknowledge the proposal."""

    code = "not_an_agreement"


class TurnUnvouched(InvalidRequest):
    """The turn was recorded by a key that may not record what a person says."""

    code = "turn_unvouched"


class TrustTooLow(AccessForbidden):
    """The caller is trusted less than whoever stands behind the memory, or than the key that it would give."""

    code = "trust_too_low"


class IdempotencyMismatch(InvalidRequest):
    """The idempotency key was used for another request before."""

    code = "idempotency_mismatch"


class PolicyError(MemplaneError):
    """A policy file is wrong; the detail names file, line and key."""

    code = "policy_invalid"


class PolicyRejected(StateConflict):
    """The policy files are wrong, and the policy before stays in force; the detail names file, line and key."""

    code = "policy_rejected"


class PromptInvalid(PolicyError):
    """A prompt's file is absent or wrong; the detail names it."""

    code = "prompt_invalid"


class SettingsError(MemplaneError):
    """The operator's settings are wrong or incomplete."""

    code = "settings_invalid"


class RateLimitExceeded(MemplaneError):
    """The key asks too often; ``retry_after`` says after how many seconds it may again."""

    code = "rate_limited"


class QuotaExceeded(MemplaneError):
    """A user or tenant has as much as the policy allows; ``quota`` says of what, ``resets_at`` when it begins again."""

    code = "quota_exceeded"


class UploadsLimited(MemplaneError):
    """The requests under way of a key, or from an address, hold as many bytes of bodies as they may."""

    code = "uploads_limited"


class RequestTimeout(MemplaneError):
    """The body did not arrive in time."""

    code = "request_timeout"


class Busy(MemplaneError):
    """The server has more to do, or to hold, than it may; trying again may help."""

    code = "busy"


class DeadlineExceeded(MemplaneError):
    """The work on a request took longer than it may."""

    code = "deadline_exceeded"


class ModelFailed(MemplaneError):
    """The language model gave no answer that can be used.

    Attributes:
        input_tokens: what the endpoint says that it has read, over all requests for this answer.
        output_tokens: what it says that it has written.
    """

    code = "model_failed"

    def __init__(self, detail: str, *, input_tokens: int = 0, output_tokens: int = 0) -> None:
        super().__init__(detail)
        self.input_tokens = input_tokens
        self.output_tokens = output_tokens


class ModelUnavailable(ModelFailed):
    """The model is down, too slow, refuses, limits the rate, or is left alone for a while because it did so before."""

    code = "model_unavailable"


class ModelAnswerInvalid(ModelFailed):
    """The model answered, but never in the shape that was asked for, or at too great a length."""

    code = "model_answer_invalid"


class NoModel(MemplaneError):
    """No language model is configured: set MEMPLANE_MODEL."""

    code = "no_model"


class BudgetSpent(MemplaneError):
    """The tokens of a tenant or a user for the day do not suffice for a question; nothing was asked."""

    code = "budget_spent"


class StorageError(MemplaneError):
    """The database refused or failed."""

    code = "storage_error"


class StorageUnavailable(StorageError):
    """The database cannot be reached, or has no free connection in time; trying again may help."""

    code = "unavailable"


class StorageFull(StorageUnavailable):
    """The disk under the database is full: nothing is written until there is room; what is there is read as before."""

    code = "storage_full"


class SchemaMismatch(StorageError):
    """The code does not fit the schema that it found."""

    code = "schema_mismatch"


class NotSupported(MemplaneError):
    """This database does not have the capability."""

    code = "not_supported"


class EmbeddingMismatch(StorageError):
    """The stored vectors were made by another embedding model than the one that runs."""

    code = "embedding_mismatch"


class UnsafeRole(StorageError):
    """The database role could bypass row-level security."""

    code = "unsafe_role"


class EmbeddedPostgresError(StorageError):
    """The embedded PostgreSQL could not be prepared, started or reached."""

    code = "embedded_postgres"
