"""Knowledge about no user: who may write it, and what it may not say.

It is part of the recall of every user of the tenant, so a word of it reaches every agent that reads its category.
"""

from memplane.application.consent.proposals import stated_in
from memplane.application.memories.authorization import require_full
from memplane.application.memories.gateway import clean_id
from memplane.domain.errors import InvalidRequest, UserForbidden, WritingConstraintViolated
from memplane.domain.identity.principal import Principal
from memplane.domain.memory.memory import SHARED, Memory
from memplane.domain.memory.writing import require_no_user
from memplane.domain.policy.policy import Policy


def owner_of(principal: Principal, user_id: str | None) -> str:
    """The user whom a write or a whole export is about, as rows have it: the caller's own to touch, or nobody.

    Raises:
        UserForbidden, TrustTooLow: the caller does not reach the user, or may not write what is about nobody.
    """
    if user_id is None:
        require_sharer(principal)
        return SHARED
    return principal.touch(clean_id(user_id, "user_id") or "")


def require_sharer(principal: Principal) -> None:
    """It takes a fully trusted key that is bound to no user.

    Raises:
        UserForbidden, TrustTooLow: the key may not write it.
    """
    if principal.users is not None:
        raise UserForbidden("user_id: this key is bound to users; it may not write what is about none of them")
    require_full(principal, "write what is part of every user's recall")


def require_shareable(policy: Policy, memory: Memory, *, of_agent: bool = True) -> None:
    """What is about no user lies in a shared category, in no conversation, and says nothing of the user.

    Args:
        policy: in force.
        memory: any memory; one about a user passes.
        of_agent: whether an agent wrote the words now; those of an import or a restore are not held to rules of style.

    Raises:
        CategoryNotShared: its category holds memories about users alone.
        Invalid: it names a conversation.
        WritingConstraintViolated: it speaks of the user, or states a field of a profile: nobody could consent to it.
    """
    if memory.user_id != SHARED:
        return
    policy.check_shared(memory.category)
    if memory.thread_id is not None:
        raise InvalidRequest(
            "thread_id: a conversation is a user's; leave it out, or name the user_id", field="thread_id"
        )
    if of_agent:
        require_no_user(memory.text)
    for each in stated_in(policy, memory):
        if each.of is None:
            raise WritingConstraintViolated(
                f"content: it states the user's {each.field}, and without a user_id it would be said of every user; "
                "name the user_id",
                field="content",
                rule="about_no_user",
                words=each.value,
            )


def refuse_conversations(user_id: str) -> None:
    """A message belongs to a user.

    Raises:
        Invalid: there is none.
    """
    if user_id == SHARED:
        raise InvalidRequest(
            "record: a message of a conversation is a user's; import it with a user_id", field="record"
        )
