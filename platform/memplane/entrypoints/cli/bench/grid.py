"""Figures as rows and columns, for a terminal and for a page."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table


@dataclass(frozen=True, slots=True)
class Grid:
    """A titled table of texts; the first column names the row, the others are numbers."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def table(self) -> Table:
        """For a terminal."""
        table = Table(title=self.title, title_justify="left")
        for place, name in enumerate(self.header):
            table.add_column(name, justify="right" if place else "left", no_wrap=place > 0)
        for row in self.rows:
            table.add_row(*row)
        return table

    def markdown(self) -> str:
        """For a page."""
        line = "|".join("---" if not place else "---:" for place in range(len(self.header)))
        body = "\n".join(f"| {' | '.join(row)} |" for row in self.rows)
        return f"{self.title}\n\n| {' | '.join(self.header)} |\n|{line}|\n{body}"
