"""What no log, error or terminal may show, taken out of a text."""

import re

_SECRETS = (
    (re.compile(r"\bmp_([0-9a-zA-Z]{1,32})_[\w-]+"), r"mp_\1_…"),
    (re.compile(r"(\w://[^\s:/@]*:)[^\s/]*@"), r"\1…@"),
    (
        re.compile(r'(percent-encoded token: |missing "=" after )"[^"]*"'),
        r'\1"…"',
    ),  # libpq, of a URL that it cannot read
    (re.compile(r"(?i)(password\s*=\s*)('[^']*'|\S+)"), r"\1…"),
)


def without_secrets(text: str) -> str:
    """A text in which no API key and no password of a URL can be read."""
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text
