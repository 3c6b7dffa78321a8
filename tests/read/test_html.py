from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from ragcli.read.nesting import flattened
from tests.read.sources import one


def text(html: str) -> str:
    return one("a.html", html.encode()).text


@pytest.mark.spec("I4", "I12")
def test_a_page() -> None:
    page = (
        "<!DOCTYPE html><html><head><title>The  gauge &amp; more</title><style>p {}</style></head><body>"
        "<nav>Menu</nav><h1>Big <b>x</b></h1><p>a<b>b</b> c &lt;\nd<br>e</p><script>alert(1)</script>"
        "<ul><li>one</li><li>two<ul><li>in</li></ul></li></ul><aside>ad</aside><h2>End</h2>tail<footer>f</footer>"
    )
    document = one("d/a.html", page.encode())
    assert document.text == "Big x\n\nab c < d\ne\n\none\ntwo\nin\n\nEnd\n\ntail"
    assert document.title == "The gauge & more"
    assert [(heading.level, heading.title) for heading in document.headings] == [(1, "Big x"), (2, "End")]
    for heading in document.headings:
        assert document.text.startswith(heading.title, heading.start)


def test_a_table_is_a_line_a_row() -> None:
    table = (
        "<table><tr><th>A</th><th>B</th><th>C</th></tr>"
        "<tr><td><p>1</p></td><td></td><td>3</td></tr>\n<tr><td></td><td></td><td>z</td><td></td></tr></table>after"
    )
    assert text(table) == "A | B | C\n1 | | 3\n| | z\n\nafter"


def test_a_layout_table_keeps_its_paragraphs() -> None:
    assert text("<table><tr><td><h2>H</h2><p>a</p><p>b</p></td></tr></table>") == "H\n\na\n\nb"


def test_preformatted_text_is_kept() -> None:
    assert text("x<pre>\n  a\n    <b>b</b>\n</pre>y") == "x\n\n  a\n    b\n\ny"


def test_a_page_of_furniture_only_is_kept() -> None:
    assert text("<nav><a>Only</a> <a>links</a></nav>") == "Only links"


def test_hidden_parts_are_left_out() -> None:
    assert (
        text("<p>a</p><div hidden>b</div><div role=navigation>c</div><template>d</template><noscript>e</noscript>")
        == "a"
    )


@pytest.mark.spec("I38")
@pytest.mark.parametrize("tag", ["div", "span", "b", "ul><li", "blockquote", "table><tr><td", "x-y"])
def test_deep_nesting_costs_no_more_than_its_length(tag: str) -> None:
    started = time.process_time()
    document = one("a.html", (f"<{tag}>" * 100_000 + "deep <p>end").encode())
    assert time.process_time() - started < 5  # an unguarded parser takes a minute for <div>
    assert document.text.split() == ["deep", "end"]
    assert re.fullmatch(r"nested more than 512 deep: the tags of \d+ elements .*", document.warnings[0])


@pytest.mark.spec("I38")
@pytest.mark.parametrize(
    "unit", ["<div><object></div></object>", "<b><div></b>", "<x><div></x>", "<!--", "<a", "<title>"]
)
def test_end_tags_that_end_nothing_and_what_never_ends(unit: str) -> None:
    started = time.process_time()
    one("a.html", (unit * 50_000).encode())
    assert time.process_time() - started < 5


def test_a_long_page_that_is_not_deep_is_left_as_it_is() -> None:
    block = (
        "<div><p>a<li>b<br><b><i>c</b></i><svg><path d='M0'/><g><path/></g></svg><table><tr><td>d<td>e</table>"
        "<script>'<div>'</script><!-- <div> --><img src='x'></div>"
    )
    page = block * 2000
    assert flattened(page) == (page, 0)


def test_tags_below_the_limit_go_and_their_ends_with_them() -> None:
    page = "<div>" * 2000 + "<h1>Deep</h1>x" + "</div>" * 2000 + "<nav>Menu</nav><p>after</p>" + "<br>" * 200
    html, dropped = flattened(page)
    assert dropped == 2001 - 512
    assert (html.count("<div>"), html.count("</div>")) == (512, 512)
    assert text(page).split() == ["Deep", "x", "after"]


@pytest.mark.spec("I3")
@pytest.mark.parametrize(
    ("data", "words"),
    [
        ('<meta charset="euc-jp"><p>日本語'.encode("euc_jp"), "日本語"),
        ("<meta http-equiv=Content-Type content='text/html; charset=windows-1251'><p>мир".encode("cp1251"), "мир"),
        ("<meta charset=utf-16><p>é".encode(), "é"),
        ("\ufeff<p>наука".encode("utf-16-le"), "наука"),
        ("<meta charset=iso-8859-1><p>“x”".encode("cp1252"), "“x”"),
    ],
)
def test_the_charset_of_a_page(data: bytes, words: str) -> None:
    assert one("a.html", data).text == words


@pytest.mark.spec("I14")
def test_times_and_metadata_of_a_page() -> None:
    document = one(
        "a.html",
        b'<head><meta property="article:published_time" content="2022-01-21T10:00:00+01:00">'
        b'<meta name="author" content="Ada"><meta name="viewport" content="x"></head><p>a',
    )
    assert (document.created_at, document.updated_at) == ("2022-01-21T09:00:00Z", None)
    assert document.metadata == {"author": "Ada"}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("_mozilla_bug620106_text.html", "テスト"),
        ("example-steelJIS-datasheet-utf-16.html", "Mechanical properties of grade SNB22-3"),
        ("handwerk-magazin.de-Angriffe.html", "IT-Sicherheit"),
        ("paul_graham_superlinear.html", "the returns for performance are superlinear."),
        ("test_wikipedia.html", "Microsoft Corporation is an American multinational"),
    ],
)
def test_real_pages(shared: Path, name: str, words: str) -> None:
    document = one(name, (shared / "data/files/html" / name).read_bytes())
    assert words in " ".join(document.text.split())
    assert "function(" not in document.text
    assert "\n\n\n" not in document.text
    for heading in document.headings:
        assert " ".join(document.text[heading.start :].split()).startswith(heading.title)
