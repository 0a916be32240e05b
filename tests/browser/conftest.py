"""A real browser without a window, for pages that are files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest

from tests.browser.browser import Browser


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    programs = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
    missing = [name for name, path in programs.items() if path is None]
    assert not missing, f"not on the PATH: {missing}; on Debian: apt-get install chromium chromium-driver"
    options = ChromeOptions()
    options.binary_location = str(programs["chromium"])
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    arguments = ["--headless=new", "--disable-dev-shm-usage", "--disable-background-networking"]
    if os.geteuid() == 0:
        arguments.append("--no-sandbox")  # which Chromium refuses to have as root
    for argument in arguments:
        options.add_argument(argument)
    driver = Chrome(options=options, service=ChromeService(str(programs["chromedriver"])))
    yield Browser(driver)
    driver.quit()
