import json
from pathlib import Path

TESTDATA = Path(__file__).parents[3] / "testdata"


def read(name):
    return json.loads((TESTDATA / name).read_text())
