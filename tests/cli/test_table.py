"""The table of a terminal: at 40, 80 and 200 columns, with hostile text, with stale hits."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ragcli.cli.formats import Reply, render
from ragcli.cli.highlight import Highlighter
from ragcli.options import AnalyzerSettings
from ragcli.text import Analyzer
from ragcli.types import Drop, Hit
from tests.cli.results import hit, result

STYLE = re.compile(r"\x1b\[[0-9;]*m")


def drawn(*hits: Hit, width: int = 80, query: str = "torque sensor", **how: Any) -> str:
    highlighter = Highlighter(query, Analyzer(AnalyzerSettings()))
    dropped = how.pop("dropped", ())
    reply = Reply(result=result(*hits, query=query, dropped=dropped), width=width, highlighter=highlighter, **how)
    return "".join(str(piece) for piece in render("table", reply))


def plain(text: str) -> str:
    return STYLE.sub("", text)


@pytest.mark.spec("C2")
@pytest.mark.parametrize("width", [40, 72, 80, 120, 200])
def test_fits_its_width_and_shows_rank_score_source_heading_and_passage(width: int) -> None:
    shown = plain(drawn(hit("The torque sensor " + "of the gripper " * 200), width=width))
    assert max(map(len, shown.split("\n"))) <= width
    words = " ".join(shown.split())
    for part in ("1", "2.50", "bm25", "handbook/leave.md:12-13", "Reset", "torque sensor", "more characters"):
        assert part in words


@pytest.mark.spec("C2")
def test_the_terms_of_the_query_are_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = drawn(hit("Reset the torque now"))
    assert re.search(r"\x1b\[1;33mtorque\x1b\[0m", shown)
    assert not re.search(r"\x1b\[1;33mReset", shown)


@pytest.mark.spec("C2")
def test_no_color_leaves_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    codes = {code for style in STYLE.findall(drawn(hit())) for code in style[2:-1].split(";")}
    assert codes <= {"", "0", "1", "2", "3"}  # bold, dim, italic: no colour (30-49, 90-107)


@pytest.mark.spec("C2")
def test_what_was_left_out_is_counted() -> None:
    text = "start " + "x " * 1500 + "torque sensor" + " y" * 1500
    shown = plain(drawn(hit(text)))
    counted = re.search(r"\(([\d,]+)\s+more\s+characters\)", shown)
    assert counted
    assert len(text) - 5 * 80 < int(counted.group(1).replace(",", "")) < len(text)
    assert "…" in shown
    assert "more" not in plain(drawn(hit(text), full=True))


@pytest.mark.spec("C12")
@pytest.mark.parametrize("width", [40, 80])
def test_a_stale_hit_is_marked(width: int) -> None:
    assert "[changed since ingest]" in " ".join(plain(drawn(hit(stale="changed"), width=width)).split())


@pytest.mark.spec("C13")
@pytest.mark.parametrize("width", [40, 80, 200])
def test_hostile_text_is_drawn_literally(width: int) -> None:
    text = "[bold]x[/] [/] :smile: \x1b[31mred \x9b \u202eevil\u202c zero\u200bwidth\ttab torque"
    shown = drawn(hit(text, heading="[red]h[/red]\x1b]0;t\x07", path='a\n"b",c\t.md'), width=width)
    words = " ".join(plain(shown).split())
    for part in ("[bold]x[/] [/] :smile:", "\\x1b[31mred", "\\x9b", "<U+202E>evil<U+202C>", "zero<U+200B>width"):
        assert part in words or part.replace(" ", "") in words.replace(" ", "")
    assert not re.search(r"[\x00-\x09\x0b-\x1a\x1c-\x1f\x7f-\x9f\u202e\u200b]", shown)
    assert all(STYLE.match(shown, at.start()) for at in re.finditer("\x1b", shown))
    assert "\U0001f604" not in shown


@pytest.mark.spec("C8")
def test_explained_it_shows_the_parts_of_each_score_and_what_was_dropped() -> None:
    drop = Drop(hit(path="other.md"), "where", "page > 3: no page")
    words = " ".join(plain(drawn(hit(), explain=True, dropped=(drop,), width=200)).split())
    assert "bm25 2.5000 = torque 1.5000 + sensor 1.0000" in words
    assert "dropped: 1 handbook/leave.md#3 where: page > 3: no page" in words


def test_no_hits_draw_nothing() -> None:
    assert drawn() == ""


@pytest.mark.spec("C2")
@pytest.mark.parametrize("width", [72, 80, 200])
def test_the_header_stays_whole_above_short_sources(width: int) -> None:
    shown = plain(drawn(hit(path="a", heading="", start_line=1, end_line=1), width=width))
    header = next(line for line in shown.split("\n") if "score" in line)
    assert header.split() == ["#", "score", "source", "passage"]


@pytest.mark.spec("C8")
@pytest.mark.parametrize("width", [40, 80])
def test_explained_it_shows_the_stages_and_what_each_dropped(width: int) -> None:
    drop = Drop(hit(path="other.md"), "where", "page > 3: no page")
    words = " ".join(plain(drawn(hit(), explain=True, dropped=(drop,), width=width)).split())
    assert "stages: bm25: 7 in, 1 out, 2.5 ms dropped: 1 handbook/leave.md#3 where: page > 3: no page" in words
    assert "stages" not in plain(drawn(hit(), width=width))


@pytest.mark.spec("C2")
@pytest.mark.parametrize("width", [1, 20, 29])
def test_where_no_table_fits_it_is_plain_text(width: int) -> None:
    reply = Reply(result=result(hit()), width=width)
    assert list(render("table", reply)) == list(render("plain", reply))


@pytest.mark.spec("C2")
@pytest.mark.parametrize("width", range(30, 40))
def test_the_narrowest_table_is_no_wider_than_the_terminal(width: int) -> None:
    assert max(len(line) for line in plain(drawn(hit(), width=width)).split("\n")) <= width
