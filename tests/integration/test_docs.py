"""Every code block of the README and of docs/ runs, and every command in them exists."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest

from statestore import Address
from statestore.bk.names import Names
from tests.quick_start import quick_start

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TOPIC = re.compile(r"persistent://public/default/(\w+)")
AWAIT = re.compile(r"query\.awaitTermination\(\d+\)")
UNTIL_COMMITTED = "[query.awaitTermination(0.1) for _ in range(2_000) if not query.recentProgress]"
RUN = ("python", "sh")
SHOWN = ("mermaid", "text")


def blocks(language: str) -> list[Any]:
    found = []
    for page in PAGES:
        for number, match in enumerate(BLOCK.finditer(page.read_text())):
            if match[1] == language:
                found.append(pytest.param(match[2], id=f"{page.relative_to(ROOT)}-{number}"))
    return found


def test_every_block_is_of_a_language_that_is_run_or_only_shown() -> None:
    languages = {match[1] for page in PAGES for match in BLOCK.finditer(page.read_text())}
    assert languages <= {*RUN, *SHOWN}


@pytest.mark.parametrize("code", blocks("python"))
def test_python_runs(code: str, pulsar: Any, tmp_path: Path) -> None:
    suffix = uuid.uuid4().hex[:8]
    for name in set(TOPIC.findall(code)):
        url = f"{pulsar.admin_url}/admin/v2/persistent/public/default/{name}-{suffix}/partitions"
        httpx.put(url, json=2, timeout=30).raise_for_status()
    code = TOPIC.sub(rf"persistent://public/default/\1-{suffix}", code)
    code = code.replace("pulsar://localhost:6650", pulsar.service_url).replace('name="', f'name="{suffix}-')
    tree = f"bk://{pulsar.zookeeper}/{suffix}"
    on_bookkeeper = "bk://localhost:2181" in code
    code = code.replace("bk://localhost:2181", tree)
    code = AWAIT.sub(UNTIL_COMMITTED, code)
    finished = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, **quick_start(with_bk=on_bookkeeper)},
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert finished.returncode == 0, finished.stderr[-4_000:]
    if on_bookkeeper:
        with Names.connect(Address.parse(tree)) as names:
            committed = [path for path, _ in names.walk(f"/{suffix}") if "/commits/" in path]
    else:
        committed = [str(path) for path in (tmp_path / "checkpoints").glob("*/commits/*")]
    assert committed, f"no micro-batch was committed:\n{finished.stderr[-4_000:]}"


@pytest.mark.parametrize("code", blocks("sh"))
def test_commands_exist(code: str) -> None:
    verbs = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for line in code.splitlines():
        words = shlex.split(line, comments=True)
        if not words:
            continue
        if words[0] == "make":
            assert words[1] in verbs, line
        elif words[0] == "eos":
            command = [word for word in words[1:] if not word.startswith("-") and word.islower()]
            shown = subprocess.run(
                [sys.executable, "-m", "eos.cli.app", *command, "--help"], capture_output=True, text=True
            )
            assert shown.returncode == 0, f"{line}: {shown.stderr}"
        elif words[0] == "statestore":
            command = words[1 : 3 if words[1] == "savepoint" else 2]
            shown = subprocess.run(
                [sys.executable, "-m", "statestore.cli.app", *command, "--help"], capture_output=True, text=True
            )
            assert shown.returncode == 0, f"{line}: {shown.stderr}"
        else:
            assert words[:2] == ["pip", "install"], f"what is {line!r}?"
