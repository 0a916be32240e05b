from __future__ import annotations

import pytest

from tools import check_style


def rules(*told: str) -> list[str]:
    return [one.rule for one in check_style.findings(list(told))]


def page(text: str) -> list[str]:
    return list(check_style.sentences_of_page(text))


@pytest.mark.parametrize(
    ("rule", "breaks", "keeps"),
    [
        ("is no X", "It is no topic's name.", "There is no topic. It is no longer there. It is not a topic's name."),
        ("of which", "A batch of which nothing is left.", "Which of the batches is it?"),
        ("no more", "It is written no more.", "It has no more than four partitions."),
        ("to be had", "No token was to be had.", "No token was found."),
        ("gone on", "The query has gone on.", "The query goes on."),
        ("behind", "Messages behind entry 5.", "Readers wait behind a transaction. A file that was left behind."),
        ("two strengths", "A batch is seen whole or not at all.", "Each partition shows all rows or none."),
        ("headless", "What fails is written again.", "What fails? Whatsoever. Say what fails."),
        ("headless", "Who reads it gets an error.", "Readers who are late wait."),
    ],
)
def test_a_pattern_is_found(rule: str, breaks: str, keeps: str) -> None:
    assert rule in rules(*check_style.sentences(breaks))
    assert rules(*check_style.sentences(keeps)) == []


def test_one_separator_in_five_sentences_is_allowed() -> None:
    assert rules("A: b.", *["C."] * 4) == []
    assert rules("A: b; c.", *["C."] * 4) == ["separators"]
    assert rules("A: b.", *["C."] * 3) == ["separators"]
    assert rules("at 12:30 on host:6650", "say `a: b`".replace("`a: b`", "`x`")) == []


def test_a_page_is_read_without_code_headings_and_drawn_tables() -> None:
    text = (
        "# What it does\n\nA [link: here](a.md#b) and `code: 1`.\nThe next; sentence.\n\n```\nWhat: x\n```\n"
        "- **Term (more)**: what it means. Another.\n1. One.\n\n| a | b |\n|---|---|\n| `x` | the cell has words |\n\n"
        "<!-- drawn: t, by x -->\n| What: is drawn by the code | |\n<!-- end of what is drawn -->\n"
    )
    assert page(text) == [
        *("A link: here and `x`.", "The next; sentence.", "what it means.", "Another.", "One.", "the cell has words"),
    ]


def test_a_message_is_a_text_of_the_code_and_no_docstring() -> None:
    source = (
        '"""What the module does."""\n\n\ndef f(a):\n    """What it does for its callers."""\n'
        '    raise ValueError(f"the topic {a} is gone: "\n        "make it again")\n\n\nKEY = "one.two-three four"\n'
    )
    assert list(check_style.messages(source)) == ["the topic {} is gone: make it again"]


def test_a_number_may_only_fall() -> None:
    allowed = {"a.md": {"behind": 2, "separators": 3}, "b.md": {"headless": 1}}
    assert check_style.exceeded({"a.md": {"behind": 2}}, allowed) == {}
    worse = check_style.exceeded({"a.md": {"behind": 3}, "c.md": {"headless": 1}}, allowed)
    assert set(worse) == {("a.md", "behind"), ("c.md", "headless")}
    assert check_style.lowered({"a.md": {"behind": 1, "separators": 9}}, allowed) == {
        "a.md": {"behind": 1, "separators": 3}
    }
