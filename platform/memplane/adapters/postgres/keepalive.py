"""How connections notice a server that is gone without a word."""

from typing import Any

from psycopg.conninfo import conninfo_to_dict

CONNECT_SECONDS = 5


def watching(url: str, seconds: float) -> dict[str, Any]:
    """Parameters of libpq, less those that the URL names: a bounded wait for the connection, and TCP keepalives.

    Args:
        url: the database.
        seconds: after which what was sent and not acknowledged breaks the connection.
    """
    usual = {
        "connect_timeout": CONNECT_SECONDS,
        "keepalives": 1,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": round(seconds * 1000),
    }
    given = conninfo_to_dict(url)
    return {name: value for name, value in usual.items() if name not in given}
