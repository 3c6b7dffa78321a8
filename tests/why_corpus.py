"""A corpus made so that it is known which text answers which question: forty gauges, each with a secret of its own.

Each note of a gauge holds the answer to one question; none of the other texts does. `FILLER` notes speak of the same
things in other words, so that a ranking has something to get wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

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


# ------------------------------------------------------------------------------- texts that stages have something to do


def warden(name: str) -> str:
    """Words that stand in the copy of a gauge's note alone."""
    return f"signed by warden {NAMES.index(name) + 1}."


def lock(name: str) -> str:
    """Words that stand in the second chunk of a gauge's book alone."""
    return f"spare lock of width {30 + NAMES.index(name)}"


def copy(name: str) -> str:
    """A note once more, with a few words behind it: to a vector nearly the same."""
    return f"{note(name).strip()} S{warden(name)[1:]}\n"


def book(name: str) -> str:
    """Two paragraphs, each a chunk where those have `SMALL` characters; the first is nearer to the question."""
    first = f"The {name} gauge has a key, and who opens the {name} gauge asks at the mill for which key it was."
    return f"{first}\n\nAt {name} there is also a chest in the cellar below the stairs, with a {lock(name)} in it.\n"


SMALL = 130


def staged_files() -> dict[str, str]:
    """`files`, and of each gauge a copy of its note and a book."""
    copies = {f"copies/{name.lower()}.md": copy(name) for name in NAMES}
    books = {f"books/{name.lower()}.md": book(name) for name in NAMES}
    return {**files(), **copies, **books}


def wardens(query: str, passages: Sequence[str]) -> list[float]:
    """A reranker of one's own, for which what a warden signed is relevant and all else is not."""
    return [1.0 if "warden" in passage else 0.1 for passage in passages]
