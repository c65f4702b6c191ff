"""What the tests of bad input share."""

import pytest


@pytest.fixture
def file(tmp_path):
    """Write a file and give its path."""

    def write(content, name="data.csv"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write
