"""The parts of a query's state that are compared, as the metadata of its operators name them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from statestore.checkpoint import LocalFiles, Operator
from statestore.checkpoint.difference import parts_of
from statestore.errors import Damaged

PATH = "state/0/_metadata/v2/0"
OPERATOR = Operator(0, "transformWithStateInPandasExec", ("default",), 2, PATH, ())


def stores(folder: Path, properties: str) -> list[str]:
    file = folder / PATH
    file.parent.mkdir(parents=True)
    file.write_text("v2\n" + json.dumps({"operatorPropertiesJson": properties}))
    return [part.store for part in parts_of(LocalFiles(folder), OPERATOR, "")]


def test_each_variable_is_a_part(tmp_path: Path) -> None:
    variables = [{"stateName": "total", "stateVariableType": "ValueState"}]
    variables += [{"stateName": "$eventTimers", "stateVariableType": "TimerState"}]
    assert stores(tmp_path, json.dumps({"stateVariables": variables})) == ["total", "timers"]


@pytest.mark.parametrize("properties", ["x", "[]", '{"stateVariables":5}', '{"stateVariables":[{}]}', "5"])
def test_variables_that_cannot_be_read_are_damaged(properties: str, tmp_path: Path) -> None:
    with pytest.raises(Damaged, match=f"^{PATH} lacks what Spark writes there of the state's variables"):
        stores(tmp_path, properties)
