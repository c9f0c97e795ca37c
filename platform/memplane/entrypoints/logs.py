"""Logs: one event a line, for people or for programs, with neither secrets nor what anybody said in them."""

import logging
import sys
import traceback
from typing import Literal, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from memplane.entrypoints.redaction import without_secrets

OURS = ("memplane", "uvicorn")


def configure(level: str, form: Literal["console", "json"], stream: TextIO | None = None) -> None:
    """Write the logs of this process to a stream.

    The level counts for Memplane and its HTTP server. Libraries are heard from WARNING on alone: below it several of
    them write down the statements that they send, with their values.

    Args:
        level: DEBUG, INFO, WARNING or ERROR.
        form: lines for people, or JSON.
        stream: standard error, unless said.
    """
    renderer: Processor = (
        structlog.processors.JSONRenderer(ensure_ascii=False)
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=False)
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_shared(),
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer, _last_look],
        )
    )
    logging.basicConfig(handlers=[handler], level=max(logging.WARNING, logging.getLevelName(level)), force=True)
    for name in OURS:
        logging.getLogger(name).setLevel(level)


def logger_of(name: str) -> structlog.stdlib.BoundLogger:
    """A logger of events with fields; what is written, and where, is the host program's to say, as of any other."""
    processors = [structlog.stdlib.filter_by_level, *_shared(), structlog.stdlib.ProcessorFormatter.wrap_for_formatter]
    found: structlog.stdlib.BoundLogger = structlog.wrap_logger(
        logging.getLogger(name), processors=processors, wrapper_class=structlog.stdlib.BoundLogger
    )
    return found


def _shared() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _where_alone,
    ]


def _where_alone(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """An exception by its type and where it was raised: its message may hold a key, or what a person said."""
    told = event.pop("exc_info", None)
    error = sys.exc_info()[1] if told is True else told[1] if isinstance(told, tuple) else told
    if isinstance(error, BaseException):
        event["error"] = type(error).__name__
        event["where"] = "".join(traceback.format_tb(error.__traceback__))
    return event


def _last_look(_logger: WrappedLogger, _method: str, rendered: EventDict | str) -> str:
    return without_secrets(str(rendered))
