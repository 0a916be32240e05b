from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from tools.site_links import on_page_markdown


def test_links_out_of_docs_become_words_and_all_others_stay(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "glossary.md").write_text("## This project\n\n- **Control topic**: a sink's log\n")
    page = SimpleNamespace(file=SimpleNamespace(abs_src_path=f"{docs}/how-to/page.md", src_path="how-to/page.md"))
    stay = "[a](#heading) [b](../limits.md) [c](../limits.md#write) ![d](../pictures/d.png) [e](x.json) [f](https://g.io/h)"
    shown = on_page_markdown(f"{stay} [i](../../eos/sinks/sink.py) [j](../../README.md#k)", page)
    assert shown == f"{stay} i j\n\n*[control topic]: a sink's log\n"
