"""The questions of tests to a browser about a page. Each question is answered with what is wrong; an empty list is
good."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:  # other verbs collect these tests without the extra that has these packages
    from pypdf import PdfReader
    from selenium.webdriver import Chrome

Scheme = Literal["light", "dark"]

# Elements that have text of their own and are seen.
TEXTS = """
const texts = [...document.body.querySelectorAll("*")].filter(e =>
  [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) && e.checkVisibility() && e.closest("svg") === null);
const say = e => e.tagName + " " + JSON.stringify(e.textContent.trim().slice(0, 40));
"""
SMALL = TEXTS + "return texts.filter(e => parseFloat(getComputedStyle(e).fontSize) < arguments[0]).map(say);"
# Contrast of text and its background, by WCAG 2: (lighter + 0.05) / (darker + 0.05).
FAINT = (
    TEXTS
    + """
const channels = color => color.match(/[\\d.]+/g).map(Number);
const light = color => channels(color).slice(0, 3).map(c => c / 255)
  .map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
  .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
const behind = e => {
  for (; e; e = e.parentElement) {
    const color = getComputedStyle(e).backgroundColor;
    if ((channels(color)[3] ?? 1) > 0) return color;
  }
  return "rgb(255, 255, 255)";
};
return texts.map(e => {
  const [a, b] = [light(getComputedStyle(e).color), light(behind(e))];
  return [e, (Math.max(a, b) + .05) / (Math.min(a, b) + .05)];
}).filter(([_, ratio]) => ratio < arguments[0]).map(([e, ratio]) => say(e) + " " + ratio.toFixed(1));
"""
)
# The parts outside of the window, unless they are inside of something that scrolls by itself.
WIDE = """
const room = document.documentElement.clientWidth;
const out = [...document.body.querySelectorAll("*")].filter(e =>
  e.checkVisibility() && e.closest(".scroll") === null && e.getBoundingClientRect().right > room + 1);
return (document.documentElement.scrollWidth > room ? ["the page scrolls sideways"] : [])
  .concat(out.map(e => e.tagName + "." + (e.getAttribute("class") || "")));
"""
# A text that another one covers: both are labels in a chart.
COVERED = """
const found = [];
for (const group of document.querySelectorAll(".x, .y")) {
  const boxes = [...group.querySelectorAll("span")].map(e => [e, e.getBoundingClientRect()]);
  for (const [i, [e, a]] of boxes.entries()) for (const [f, b] of boxes.slice(i + 1))
    if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
      found.push(e.textContent + " and " + f.textContent);
}
return found;
"""


class Browser:
    """One window, whose size and color scheme are set before a page is opened."""

    def __init__(self, driver: Chrome) -> None:
        self._driver = driver

    def open(self, page: Path, width: int = 1280, scheme: Scheme = "light", media: str = "") -> None:
        """Open a file. Earlier log lines are forgotten."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self._driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
        self.run("window.stop()")
        self.complaints()
        self.requests()
        self._driver.get(page.as_uri())

    def run(self, script: str, *arguments: object) -> Any:
        """Run JavaScript in the page."""
        return self._driver.execute_script(script, *arguments)

    def complaints(self) -> list[str]:
        """The lines of the console since the last time, at any level."""
        return [entry["message"] for entry in self._driver.get_log("browser")]

    def requests(self) -> list[str]:
        """The addresses that were asked for since the last time, data: left out."""
        events = [json.loads(entry["message"])["message"] for entry in self._driver.get_log("performance")]
        asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
        return [address for address in asked if not address.startswith("data:")]

    def small(self, least: float) -> list[str]:
        """Texts with letters smaller than `least` pixels."""
        return list(self.run(SMALL, least))

    def faint(self, least: float) -> list[str]:
        """Texts with less contrast than `least` to their background."""
        return list(self.run(FAINT, least))

    def wide(self) -> list[str]:
        """The parts outside of the window to the right."""
        return list(self.run(WIDE))

    def covered(self) -> list[str]:
        """Labels of a chart's axis that lie on each other."""
        return list(self.run(COVERED))

    def nameless(self) -> list[str]:
        """Images, regions and links of the accessibility tree that have no name."""
        nodes = self._driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        asked = {"image", "img", "region", "link", "DisclosureTriangle"}
        found = [node for node in nodes if not node["ignored"] and node["role"]["value"] in asked]
        assert found, "the page has neither images nor regions nor links"
        return [node["role"]["value"] for node in found if not node.get("name", {}).get("value")]

    def pdf(self) -> PdfReader:
        """The page as it is printed on A4."""
        from pypdf import PdfReader

        asked = {"paperWidth": 8.27, "paperHeight": 11.69, "printBackground": False, "preferCSSPageSize": True}
        printed = self._driver.execute_cdp_cmd("Page.printToPDF", asked)
        return PdfReader(io.BytesIO(base64.b64decode(printed["data"])))
