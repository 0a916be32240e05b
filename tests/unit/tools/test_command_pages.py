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


def section(program: str, verb: str) -> str:
    return command_pages.drawn(program).partition(f"### {verb}\n")[2].partition("### ")[0]


def test_a_section_has_the_help_and_each_option_with_its_default() -> None:
    skip = section("eos", "eos sink skip")
    assert "- `--batch` (required): " in skip
    assert "Also `NAME`, `--namespace`, `--yes`, [`--json`](json/eos-sink-skip.json), [connection](#" in skip
    assert "--service-url" not in skip
    assert "- `--kills`: " in section("statestore", "statestore drill")


def test_an_option_of_several_verbs_is_told_once() -> None:
    page = command_pages.drawn("statestore")
    assert page.count("A Hadoop option, fs.bk.NAME=VALUE") == 1
    assert section("statestore", "statestore cat").strip().endswith("Takes `URI`, `--option`.")


def test_json_leads_to_its_schema() -> None:
    assert "Also `URI`, `--option`, [`--json`](json/statestore-ls.json)." in section("statestore", "statestore ls")
    listed = section("eos", "eos sink list").strip()
    assert listed.endswith("Takes `--namespace`, [`--json`](json/eos-sink-list.json), [connection](#command-line).")
    assert "json" not in section("eos", "eos sink skip").replace("[`--json`](json/eos-sink-skip.json)", "")


def test_a_verb_that_is_there_by_two_names_is_told_once() -> None:
    assert section("statestore", "statestore savepoint restore").strip() == "The same as `statestore restore`."
