"""The page of the command line has each verb with its arguments and options."""

from __future__ import annotations

from typer.main import get_command

from tools import command_pages


def test_each_verb_of_both_programs_has_a_section() -> None:
    for name, app in command_pages.APPS.items():
        typed = [verb for verb, _ in command_pages.verbs(name)]
        words = set(vars(get_command(app))["commands"])
        assert {verb.split()[1] for verb in typed} == words
        assert len(typed) == len(set(typed))
        assert all(f"### {verb}\n" in command_pages.drawn(name) for verb in typed)


def test_a_section_has_the_help_and_each_option_with_its_default() -> None:
    section = command_pages.drawn("eos").partition("### eos skip")[2].partition("### ")[0]
    assert "| `NAME` | required | " in section
    assert "| `--namespace` | `public/default` | " in section
    assert "It takes the [options of a connection](#command-line) too." in section
    assert "--service-url" not in section
    assert "| `--kills` |" in command_pages.drawn("statestore").partition("### statestore drill\n")[2]
