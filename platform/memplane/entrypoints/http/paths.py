"""Parameters of a path that may hold whatever a name may."""

from starlette.convertors import PathConvertor, register_url_convertor


class TextConvertor(PathConvertor):
    """Any text, with slashes, and with line breaks, which the framework's own ``path`` does not take."""

    regex = r"[\s\S]*"


def install() -> None:
    """Let routes say ``{name:text}``."""
    register_url_convertor("text", TextConvertor())
