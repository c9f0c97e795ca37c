"""What a rule would find that is not worth keeping, or not understood later: errands, passing work, vague events."""

import re

_KEEPSAKE = ("change", "event", "goal", "project", "plan", "activity", "identity.goal", "identity.dream")
_ERRAND = re.compile(
    r"\A(?:(?:am|have|been|will|want|hope|plan|need|going|trying) (?:to )?)*(?:to )?(?!(?:bought|buy|sold|ordered)\b)"
    r"[\w-]+(?: (?!from|with|about|at|of|by|that|who)[\w'-]+){0,4}? "
    r"(?:tickets?|issues?|bugs?|containers?|process(?:es)?"
    r"|functions?|files?|folders?|queries|branch|commits?|pull requests?|PRs?|exceptions?|errors?|arrays?|threads?"
    r"|ports?|tabs?|terminals?|tables?|lists?|doors?|e-?mails?|servers?|variables?|tests|typos?|arguments?"
    r"|(?:chapter|line|step|section|page|slide|level|question) (?:\d+|one|two|three|four|five))"
    r"(?=$| (?:on|in|for|to|with|from|at|about|around|that|of|by|every|and)\b|,)",
    re.IGNORECASE,
)
_UNTOLD = re.compile(
    r"[\w ]{0,24}?\b(?:the|my) (?!army|navy|military|marines|police|lottery|marathon|gym|church|choir|band|club|team"
    r"|house|job|flat|apartment|business|company|car|dog|cat|piano|guitar|violin|drums|cello|flute|faith|force"
    r"|union|board|degree|thesis|bar|university|college|school|leg|arm|ankle|wrist|knee|foot|back|shoulder|hip|nose"
    r"|finger|toe|rib|baby|city|country|kids|engagement|wedding|record|name|boyfriend|girlfriend|wife|husband"
    r"|partner|fianc|father|mother|brother|sister|son|daughter|dad|mom|mum|bike|boat|phone|laptop|motorcycle|farm"
    r"|shop|store|restaurant|cafe|bakery|studio|collection|piercing|virginity|wallet|passport|subscription|membership"
    r"|leg|acl|achilles)[a-z]+(?: (?:on|in|around) (?:the (?:week|spring|summer|fall|autumn|winter)|\d|[A-Z]).*)?$"
)
_VAGUE = re.compile(
    r"(?:had|got|reached|hit|achieved|went (?:to|through)|found|made|experienced) (?:an? |my |some )(?:[\w-]+ ){0,2}"
    r"(?:milestones?|wins?|moment|place|spot|experience|setback|surprise|situation|breakthrough|game|match|workout"
    r"|practice|epiphany|realization|realisation|thing|news|idea|problem|issue)\b"
)
_UNAIMED = re.compile(
    r"\b(?:to|be|am) (?:(?:save|sign|set)(?: up)?|apply|join|attend|enroll?|explore|expand|launch|raise|host|buy"
    r"|visit|open"
    r"|go (?:back )?(?:home|to (?:the )?(?:beach|park|store|gym|mall|movies|cinema|bathroom|bank|office|doctor|pool|bar"
    r"|shops?|supermarket|bed|work)))$"
)
_RELATION = re.compile(
    r"have (?:an? |some |two |three |four |\d+ )(?:(?:[\w-]+ )?(?:friend|colleague|coworker|neighbou?r|boss|manager"
    r"|teacher|mentor)s?)$"
)


def trivial(rule: str, body: str) -> bool:
    """Whether what a rule found passes too soon, or is too vague, to be remembered.

    Args:
        rule: the name of the rule.
        body: the words after 'I', or after 'My goal is', without afterthoughts.
    """
    if rule == "relationship.has":
        return bool(_RELATION.match(body))
    if rule.startswith(("goal", "plan")) and _UNAIMED.search(body):
        return True
    if not rule.startswith(_KEEPSAKE):
        return False
    if rule.startswith("change") and _UNTOLD.match(body):
        return True
    return bool(_ERRAND.match(body)) or (rule.startswith("event") and bool(_VAGUE.match(body)))
