"""One PostgreSQL server for all tests of ledgers, where there can be one."""

from __future__ import annotations

import pytest

from tests import postgres


@pytest.fixture(scope="session")
def server():
    if why := postgres.missing():
        pytest.skip(why)
    server = postgres.Server()
    yield server
    server.close()
