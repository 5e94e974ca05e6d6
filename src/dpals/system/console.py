"""Messages, tables and progress through rich, safe for texts that anybody may have written."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import rich.console
from rich.text import Text

from dpals.system.terminal import visible


class Console(rich.console.Console):
    """A console that prints texts as they are: brackets and colons mean nothing, control characters are visible.

    Examples
    --------
    >>> Console().print("[/b] of [red]films[/red] :smile:")
    [/b] of [red]films[/red] :smile:
    """

    def __init__(self, *, stderr: bool = False, quiet: bool = False, soft_wrap: bool = True, **more: Any) -> None:
        more |= {"stderr": stderr, "quiet": quiet, "soft_wrap": soft_wrap}
        super().__init__(markup=False, emoji=False, highlight=False, **more)

    def render_str(self, text: str, **options: Any) -> Text:
        """Every text that is printed, also in tables, becomes one of rich here."""
        return super().render_str(visible(text) if self.is_terminal else text, **options)

    @contextmanager
    def doing(self, what: str = "...") -> Iterator[Callable[[str], None]]:
        """Show a spinner and what is being done while the block runs; the function it yields changes the text."""
        with self.status(self.render_str(what)) as shown:
            yield lambda text: shown.update(self.render_str(text))
