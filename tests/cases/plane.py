"""Five documents and a query as directions in a plane, from a real embeddings service: worked by hand.

The query points to 0 degrees, `a` to 5, `b` to 8, `c` to 10, `d` to 60, `e` to 100: three near the query and each
other, two away from both.
"""

from __future__ import annotations

from math import cos, radians, sin

from tests.services import Received, Reply, answer

DEGREES = {"query": 0, "a": 5, "b": 8, "c": 10, "d": 60, "e": 100}


def directions(request: Received) -> Reply:
    """The vector of each text: that of its first word, the x axis for others."""
    angles = [radians(DEGREES.get(text.split()[0], 0)) for text in request.texts]
    return answer([[cos(angle), sin(angle)] for angle in angles])


def records() -> str:
    """The documents as lines of JSON, each one word."""
    return "".join(f'{{"_id": "{name}", "text": "{name}"}}\n' for name in DEGREES if name != "query")
