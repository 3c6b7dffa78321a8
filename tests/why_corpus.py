"""A corpus made so that it is known which text answers which question: forty gauges, each with a secret of its own.

Each note of a gauge holds the answer to one question; none of the other texts does. `FILLER` notes speak of the same
things in other words, so that a ranking has something to get wrong.
"""

from __future__ import annotations

NAMES = (
    "Aldby", "Brean", "Calder", "Dunmore", "Ewell", "Fosse", "Garve", "Hythe", "Inver", "Jarrow", "Keld", "Ludwell",
    "Marsk", "Nairn", "Orford", "Penrith", "Quorn", "Rothes", "Selby", "Thirsk",
)  # fmt: skip
STATES = ("frozen", "flooded", "silent", "leaning", "rusty")


def question(name: str) -> str:
    """What the note of a gauge answers."""
    return f"which key opens the {name} gauge"


def answer(name: str) -> str:
    """The words that answer it, which stand in that note alone."""
    return f"the brass key number {100 + NAMES.index(name)}"


def note(name: str) -> str:
    """The note of a gauge."""
    at = NAMES.index(name)
    return f"The {name} gauge is {STATES[at % 5]}. It opens with {answer(name)}. It was last seen in week {at + 1}.\n"


def files() -> dict[str, str]:
    """Every note, and a filler beside each that is about the gauge and holds no answer."""
    notes = {f"notes/{name.lower()}.md": note(name) for name in NAMES}
    filler = {f"filler/{name.lower()}.md": f"The {name} gauge stands by the river. Which key?\n" for name in NAMES}
    return {**notes, **filler}
