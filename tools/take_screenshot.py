"""Take a picture of a drill's report: `python tools/take_screenshot.py REPORT.html [OUT.png]`. Needs Chromium.

The report is one that a drill wrote, such as build/drills/report.html of `make drills`. The picture shows its beginning
on a desk's screen, by default in docs/pictures/drill-report.png.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "pictures" / "drill-report.png"
WIDTH, HEIGHT = 1100, 1140
_LOADED_MS = 5_000


def command(chromium: str, report: Path, picture: Path) -> list[str]:
    """Return the words that have Chromium write a picture of a page, which fetches nothing."""
    words = [
        chromium,
        "--headless=new",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        f"--window-size={WIDTH},{HEIGHT}",
        f"--virtual-time-budget={_LOADED_MS}",
        f"--screenshot={picture.resolve()}",
    ]
    if os.geteuid() == 0:
        words.append("--no-sandbox")  # which Chromium refuses to have as root
    return [*words, report.resolve().as_uri()]


def main(arguments: list[str]) -> int:
    """Take the picture. Returns the exit code."""
    report, picture = Path(arguments[0]), Path(arguments[1]) if len(arguments) > 1 else PICTURE
    chromium = shutil.which("chromium")
    if chromium is None:
        print("chromium is not on the PATH. On Debian: apt-get install chromium", file=sys.stderr)
        return 2
    if not report.is_file():
        print(f"{report} does not exist. A drill writes it: make drills", file=sys.stderr)
        return 2
    picture.unlink(missing_ok=True)
    done = subprocess.run(command(chromium, report, picture), capture_output=True, text=True)
    if not picture.is_file():
        print(f"Chromium wrote no picture:\n{done.stderr}", file=sys.stderr)
        return 1
    print(f"{picture}: {picture.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
