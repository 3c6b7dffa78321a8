"""A04: a Chinese PDF with a CID font (Identity-H) failed with an encoding error. Its text is extracted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.read.sources import identity_h_pdf, one


@pytest.mark.spec("I4")
def test_text_of_an_identity_h_font_is_extracted() -> None:
    assert one("a.pdf", identity_h_pdf("繁體中文測試")).text == "繁體中文測試"


@pytest.mark.spec("I4")
def test_a_real_file(shared: Path) -> None:
    document = one("k.pdf", (shared / "data/files/pdf/normal_4pages.pdf").read_bytes())
    assert "세계적 유행(Pandemic) 단계" in document.text
    assert document.warnings == ()
