from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from tools import check_pins

PROJECT: dict[str, Any] = {
    "build-system": {"requires": ["hatchling>=1"]},
    "project": {
        "name": "our-own",
        "dependencies": ["Rich>=13"],
        "optional-dependencies": {"drills": ["our-own[spark]", "psutil>=6"]},
    },
    "dependency-groups": {"tests": ["pytest>=8", {"include-group": "lint"}]},
}
PINS = "# all\nhatchling==1.33.0\nrich==15.0.0\npsutil==7.2.2\npytest==9.2.0\n"


def test_all_that_is_named_is_pinned() -> None:
    assert list(check_pins.unpinned(PROJECT, PINS)) == []


@pytest.mark.parametrize("name", ["hatchling", "rich", "psutil", "pytest"])
def test_a_missing_pin_is_found_wherever_its_package_is_named(name: str) -> None:
    pins = "".join(line for line in PINS.splitlines(keepends=True) if not line.startswith(name))
    (found,) = check_pins.unpinned(PROJECT, pins)
    assert name in found.lower()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("rich==15.0.0", "rich==12.0.0", "allows >=13"),
        ("rich==15.0.0", "rich>=15", "does not pin one version"),
        ("rich==15.0.0", "rich==15.*", "does not pin one version"),
        ("rich==15.0.0", "rich==15.0.0\nRich==15.0.1", "twice"),
    ],
)
def test_a_pin_must_be_one_version_within_the_bounds(old: str, new: str, words: str) -> None:
    assert any(words in found for found in check_pins.unpinned(PROJECT, PINS.replace(old, new)))


def pom(dependency: str, plugin: str = "<version>3.6.0</version>") -> ElementTree.Element:
    return ElementTree.fromstring(f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
      <properties><netty.version>4.2.13.Final</netty.version></properties>
      <dependencyManagement><dependencies>
        <dependency><groupId>io.netty</groupId><artifactId>netty-bom</artifactId><version>${{netty.version}}</version>
          <scope>import</scope></dependency>
        <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-api</artifactId><version>2.0.17</version></dependency>
      </dependencies></dependencyManagement>
      <dependencies><dependency>{dependency}</dependency></dependencies>
      <build><plugins><plugin><groupId>org.plugins</groupId><artifactId>shade</artifactId>{plugin}</plugin></plugins></build>
    </project>""")


@pytest.mark.parametrize(
    "dependency",
    [
        "<groupId>io.netty</groupId><artifactId>netty-buffer</artifactId>",
        "<groupId>org.slf4j</groupId><artifactId>slf4j-api</artifactId>",
        "<groupId>a</groupId><artifactId>b</artifactId><version>${netty.version}</version>",
    ],
)
def test_a_version_may_come_from_a_bom_the_management_or_a_property(dependency: str) -> None:
    assert list(check_pins.open_versions(pom(dependency))) == []


@pytest.mark.parametrize("version", ["", "[1,2)", "1.0-SNAPSHOT", "LATEST", "${missing.version}"])
def test_an_open_version_is_found_in_dependencies_and_plugins(version: str) -> None:
    element = f"<version>{version}</version>"
    found = list(check_pins.open_versions(pom(f"<groupId>a</groupId><artifactId>b</artifactId>{element}", element)))
    assert [one.split(": ")[0] for one in found] == [
        "pom.xml has no exact version for a:b",
        "pom.xml has no exact version for org.plugins:shade",
    ]
