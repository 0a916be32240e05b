"""What the matrix found is drawn as it was found: what was not run is never told as a success."""

from __future__ import annotations

from tools.matrix_page import BEGIN, END, drawn, merged, table


def row(spark: str, part: str, answer: str, why: str = "") -> dict[str, str]:
    return {"spark": spark, "pulsar": "4.2.4", "python": "3.11.7", "part": part, "answer": answer, "why": why}


def test_what_was_not_run_is_told_as_such_and_versions_are_in_order() -> None:
    found = table([row("10.0.0", "sink", "worked"), row("3.5.9", "sink", "failed"), row("3.5.9", "diff", "can't")])
    assert found.splitlines() == [
        "| part | Spark 3.5.9, Pulsar 4.2.4 | Spark 10.0.0, Pulsar 4.2.4 |",
        "|---|---|---|",
        "| sink | failed | worked |",
        "| diff | can't | not run |",
    ]


def test_the_newest_answer_of_a_part_counts() -> None:
    before = [row("3.5.9", "sink", "failed", "it hung"), row("3.5.9", "diff", "can't")]
    assert merged(before, [row("3.5.9", "sink", "worked")]) == [row("3.5.9", "sink", "worked"), before[1]]


def test_a_page_is_drawn_again_with_the_reasons() -> None:
    page = f"# Top\n{BEGIN}\nold\n{END}\nrest\n"
    rows = [row("3.5.9", "diff", "can't", "Spark lacks it.")]
    once = drawn(page, rows)
    assert "old" not in once
    assert "- On Spark 3.5.9 and Pulsar 4.2.4 the part *diff* can't run. Spark lacks it.\n" in once
    assert once.startswith("# Top\n")
    assert once.endswith(f"{END}\nrest\n")
    assert drawn(once, rows) == once
