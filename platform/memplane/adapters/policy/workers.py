"""``workers.yaml``: when background work is done, and how often it is tried."""

from datetime import UTC, datetime, timedelta

from croniter import CroniterBadDateError, croniter

from memplane.adapters.policy.value import Value
from memplane.domain.jobs.job_definitions import (
    NIGHTLY,
    Extraction,
    FactMode,
    FactRules,
    ModelRules,
    Schedule,
    WorkerRules,
)

MAX_SECONDS = 86_400
MAX_TOKENS = 1_000_000_000_000
MAX_PRICE = 1_000_000
MAX_FACTS = 10_000
QUIET_MINUTES = 10
MAX_QUIET_MINUTES = 1_440
_FIELDS = 5


def read_workers(root: Value) -> WorkerRules:
    """Read the file; what is wrong goes to the root's report."""
    fields = root.fields(
        ("schedules", "attempts", "pause_seconds", "longest_pause_seconds", "model", "facts"), ("entities", "sessions")
    )
    schedules = {name: _schedule(value) for name, value in fields["schedules"].fields(NIGHTLY).items()}
    shortest = fields["pause_seconds"].whole(1, MAX_SECONDS, fallback=1)
    longest = fields["longest_pause_seconds"].whole(1, MAX_SECONDS, fallback=MAX_SECONDS)
    if longest < shortest:
        fields["longest_pause_seconds"].fail(f"expected at least pause_seconds, which is {shortest}, got {longest}")
    return WorkerRules(
        schedules=schedules,
        attempts=fields["attempts"].whole(1, 100, fallback=1),
        pause=timedelta(seconds=shortest),
        longest_pause=timedelta(seconds=longest),
        entities=fields["entities"].choice("way", Extraction, Extraction.ACCURATE),
        model=_model(fields["model"]),
        facts=_facts(fields["facts"]),
        quiet=timedelta(minutes=_quiet_minutes(fields["sessions"])),
    )


def _quiet_minutes(value: Value) -> int:
    if not value.present:
        return QUIET_MINUTES
    return value.fields(("quiet_minutes",))["quiet_minutes"].whole(1, MAX_QUIET_MINUTES, fallback=QUIET_MINUTES)


def _model(value: Value) -> ModelRules:
    fields = value.fields(
        ("tenant_tokens_per_day", "user_tokens_per_day", "input_price_per_million", "output_price_per_million")
    )
    return ModelRules(
        tenant_tokens=fields["tenant_tokens_per_day"].whole(0, MAX_TOKENS),
        user_tokens=fields["user_tokens_per_day"].whole(0, MAX_TOKENS),
        input_price=fields["input_price_per_million"].number(0, MAX_PRICE),
        output_price=fields["output_price_per_million"].number(0, MAX_PRICE),
    )


def _facts(value: Value) -> FactRules:
    fields = value.fields(("mode", "user_per_day"))
    return FactRules(
        fields["mode"].choice("mode", FactMode, FactMode.HYBRID), fields["user_per_day"].whole(0, MAX_FACTS)
    )


def _schedule(value: Value) -> Schedule | None:
    if not value.present or value.says_off():
        return None
    cron = " ".join(value.text().split())
    if not cron:
        return None
    if len(cron.split()) != _FIELDS or not croniter.is_valid(cron):
        value.fail(f"expected off, or minute, hour, day, month and weekday (UTC) such as '0 4 * * *', got {cron!r}")
        return None

    def last(moment: datetime) -> datetime:
        after = moment.replace(microsecond=0) + timedelta(seconds=1)
        found: datetime = croniter(cron, after).get_prev(datetime)
        return found

    try:
        last(datetime.now(UTC))
    except CroniterBadDateError:
        value.fail(f"{cron!r} names no moment at all, as there is no 30 February")
        return None
    return Schedule(cron, last)
