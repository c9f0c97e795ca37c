"""A request that is sent again: one effect, and the first answer."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from memplane.application.ports import Storage
from memplane.application.records import StoredAnswer
from memplane.application.transaction import UnitOfWork
from memplane.domain.errors import IdempotencyMismatch, MemplaneError, OutOfOrder, StateConflict, UserErased
from memplane.domain.identity.principal import Principal

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Once(Generic[T]):
    """A request that must have its effect once, however often it is sent.

    Attributes:
        key: the caller's idempotency key.
        request: SHA-256 (hex) of the request.
        answer: what to keep of the outcome, for the same request sent again.
        about: says, when the work is done, of whom the answer tells; '' for nobody, ``None`` for several.
        after: the key of another request of the caller, without which this one is not carried out.
    """

    key: str
    request: str
    answer: Callable[[T], Mapping[str, object]]
    about: Callable[[], str | None] = str
    after: str | None = None


class AlreadyDone(Exception):
    """The request was carried out before; this is what it was answered."""

    def __init__(self, answer: Mapping[str, object]) -> None:
        super().__init__("the request was carried out before")
        self.answer = answer


async def run_once(
    storage: Storage,
    principal: Principal,
    work: Callable[[UnitOfWork], Awaitable[T]],
    now: datetime,
    *,
    users: Collection[str] = (),
    once: Once[T] | None = None,
) -> T:
    """Run the work in one transaction; the same request sent again has no second effect.

    Raises:
        AlreadyDone: the request was carried out before.
        IdempotencyMismatch: its key was used for another one.
        OutOfOrder: what it comes after was not carried out.
    """

    async def attempt(uow: UnitOfWork) -> T:
        if once is not None and once.after is not None:  # with its users locked, which that one had locked too
            await _require(uow, principal, once.after)
        done = await work(uow)
        # at the end: a request that is sent once pays for one statement, one that is repeated is taken back here
        if once is None:
            return done
        if not await uow.answers.keep(principal.namespace, once.key, _answered(once, done), now, once.about()):
            raise StateConflict("Idempotency-Key: is in use at this moment; try again")
        return done

    try:
        return await storage.write(principal.reach, attempt, users)
    except MemplaneError:
        await raise_if_done(storage, principal, once)  # what was done before may be why it cannot be done now
        raise


async def raise_if_done(storage: Storage, principal: Principal, once: Once[T] | None) -> None:
    """Stop here when a request was carried out before.

    Raises:
        AlreadyDone: it was.
        IdempotencyMismatch: its key was used for another one.
    """
    if once is not None:
        said = await storage.write(principal.reach, lambda uow: uow.answers.find_answer(principal.namespace, once.key))
        _check(said, once)


async def _require(uow: UnitOfWork, principal: Principal, after: str) -> None:
    if await uow.answers.find_answer(principal.namespace, after) is None:
        raise OutOfOrder(f"Idempotency-After: the request '{after}' was not carried out; send this one after it")


def _answered(once: Once[T], done: T) -> StoredAnswer:
    return StoredAnswer(once.request, once.answer(done))


def _check(answered: StoredAnswer | None, once: Once[T]) -> None:
    if answered is None:
        return
    if answered.request_hash != once.request:
        raise IdempotencyMismatch("Idempotency-Key: was used for another request; choose a new one", key=once.key)
    if not answered.answer:
        raise UserErased("Idempotency-Key: the request was carried out; its answer was erased with what it told of")
    raise AlreadyDone(answered.answer)
