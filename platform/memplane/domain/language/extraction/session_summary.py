"""What a conversation was about, told by rule: what was asked, what came of it, what was decided, what is left open."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from memplane.domain.memory.memory import Role, Turn
from memplane.domain.memory.writing import sentences

LONGEST = 110
"""Characters of a sentence that is told; longer ones are cut at a word."""
MOST = 5
"""The most decisions, and the most open items."""
READ = 2_000
"""Characters of a turn that are read."""
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_PASTED = re.compile(r"^\s*(?:>|\||#{1,6} |//|(?:system|assistant|user) ?:)", re.IGNORECASE)
_GREETING = re.compile(
    r"(?:(?:hi|hello|hey|good (?:morning|evening|afternoon)|thanks|thank you|ok|okay|sure|great|bye|goodbye"
    r"|see you(?: later| soon)?|you'?re welcome|no problem)\b[\w ,!.']{0,24}[.!,]?)$",
    re.IGNORECASE,
)
_DECIDED = re.compile(
    r"\b(?:(?:we|i|they)(?:'ve| have| had)? (?:both |all |now |finally )?"
    r"(?:decided|agreed|chose|chosen|settled on|picked)"
    r"|(?:we|i)(?:'ll| will|'re going to| are going to|'m going to| am going to) go (?:with|for|ahead)"
    r"|let(?:'s| us) (?:go (?:with|for|ahead)|do|use|take|keep|stick with)"
    r"|(?:it is|it's|that's|that is) (?:decided|agreed|settled)|decision ?:|agreed ?:)",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\b(?:to-?do|next steps?|open (?:question|item|point)s?) ?:|\b(?:still (?:need|have|has|needs) to"
    r"|(?:remains?|left) to (?:be )?\w+|not (?:done|finished|decided) yet|haven't \w+ yet|have not \w+ yet"
    r"|remind me (?:to|about)|don't (?:let me )?forget (?:to|about)|follow(?:ing)? up (?:on|with)"
    r"|(?:i|we)(?:'ll| will) (?:get back|check|look into|come back)|(?:next time|tomorrow|next week),? (?:i|we)\b"
    r"|waiting for|until (?:i|we) hear)\b",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    r"\b(?:if|whether|unless|should (?:we|i)|could (?:we|i)|shall (?:we|i)|might|maybe|perhaps|would|suppose"
    r"|pretend|imagine|not|never|\w+n't)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence that is told of, as it was said, and the turn that says it."""

    text: str
    turn: Turn


@dataclass(frozen=True, slots=True)
class SessionSummaryText:
    """What a conversation was about; every part is somebody's own sentence.

    Attributes:
        request: what the user asked for first.
        outcome: what was said to them last.
        decisions: what was decided, in the order in which it was said.
        open_items: what is left to do, and a last question that nobody answered.
    """

    request: Said | None
    outcome: Said | None
    decisions: tuple[Said, ...] = ()
    open_items: tuple[Said, ...] = ()

    @property
    def told(self) -> tuple[Said, ...]:
        """Every sentence that it tells of."""
        return tuple(each for each in (self.request, self.outcome, *self.decisions, *self.open_items) if each)

    @property
    def sources(self) -> tuple[Turn, ...]:
        """The turns that it quotes, once each, in the order of the conversation."""
        return tuple(sorted({each.turn.id: each.turn for each in self.told}.values(), key=lambda turn: turn.seq))

    def without(self, left_out: Callable[[Said], bool]) -> "SessionSummaryText | None":
        """The summary without some sentences; ``None`` when nothing is left of it."""
        request, outcome = (None if each is None or left_out(each) else each for each in (self.request, self.outcome))
        decisions, items = (
            tuple(each for each in some if not left_out(each)) for some in (self.decisions, self.open_items)
        )
        kept = SessionSummaryText(request, outcome, decisions, items)
        return kept if kept.sources else None


def summarised(turns: Sequence[Turn]) -> SessionSummaryText | None:
    """The summary of a conversation, by rule; ``None`` when nothing was said in it that can be told.

    Decisions and open items are found in English alone; what was asked and answered in any language. A sentence that
    supposes, asks or denies is no decision. What is quoted, pasted or code is nobody's sentence, and a user's turn
    that nobody vouched for is not told of.

    Args:
        turns: of one conversation, in their order.
    """
    heard = [turn for turn in turns if turn.role in (Role.USER, Role.ASSISTANT) and turn.vouched]
    spoken = [(turn, list(_sentences(turn.text))) for turn in heard]
    users = [(turn, said) for turn, said in spoken if turn.role is Role.USER and said]
    answers = [(turn, said) for turn, said in spoken if turn.role is Role.ASSISTANT and said]
    if not users and not answers:
        return None
    request = Said(_cut(_asked(users[0][1])), users[0][0]) if users else None
    outcome = Said(_cut(_concluded(answers[-1][1])), answers[-1][0]) if answers else None
    decisions = _first(Said(_cut(each), turn) for turn, said in spoken for each in said if is_decision(each))
    open_items = _first(Said(_cut(each), turn) for turn, said in spoken for each in said if is_open(each))
    unanswered = _unanswered(spoken)
    if unanswered is not None and unanswered.text not in {each.text for each in open_items}:
        open_items = (*open_items[: MOST - 1], unanswered)
    return SessionSummaryText(request, outcome, decisions, open_items)


def is_decision(sentence: str) -> bool:
    """Whether a sentence says that something was decided."""
    found = None if sentence.endswith("?") else _DECIDED.search(sentence)
    return found is not None and not _UNSURE.search(sentence, 0, found.end())


def is_open(sentence: str) -> bool:
    """Whether a sentence says that something is left to do."""
    return not sentence.endswith("?") and bool(_OPEN.search(sentence)) and not is_decision(sentence)


def _sentences(text: str) -> Iterator[str]:
    whole = _CODE.sub(" ", text[:READ])
    lines = "\n".join(line for line in whole.split("\n") if not _PASTED.match(line))
    for sentence in sentences(lines):
        plain = " ".join(sentence.split())
        if any(character.isalnum() for character in plain) and not _GREETING.fullmatch(plain):
            yield plain


def _asked(said: Sequence[str]) -> str:
    """The first question of a message, or else its first sentence."""
    return next((each for each in said if each.endswith("?")), said[0])


def _concluded(said: Sequence[str]) -> str:
    """The last sentence of a message that is no question back, or else its last one."""
    return next((each for each in reversed(said) if not each.endswith("?")), said[-1])


def _unanswered(spoken: Sequence[tuple[Turn, Sequence[str]]]) -> Said | None:
    """The question with which the conversation ends, if the user had the last word."""
    if not spoken or spoken[-1][0].role is not Role.USER:
        return None
    turn, said = spoken[-1]
    question = next((each for each in reversed(said) if each.endswith("?")), None)
    return None if question is None else Said(_cut(question), turn)


def _first(found: Iterable[Said]) -> tuple[Said, ...]:
    """The first few, each words once."""
    kept: dict[str, Said] = {}
    for each in found:
        kept.setdefault(each.text.casefold(), each)
        if len(kept) == MOST:
            break
    return tuple(kept.values())


def _cut(sentence: str) -> str:
    if len(sentence) <= LONGEST:
        return sentence
    head = sentence[: LONGEST - 1]
    return f"{head[: head.rfind(' ')] if ' ' in head else head}…"
