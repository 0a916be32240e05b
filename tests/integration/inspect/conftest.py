"""The rows are written by the official client, and by transactions of this project's own."""

from tests.contract.conftest import make_client as make_client
from tests.contract.conftest import ours as ours
