"""Jobs with connections to their server that are cut ten times: nothing is lost or doubled, and no password is told."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from edl.models.archive import read_archive
from sqlflow_edl.session.observer import Silent
from sqlflow_edl.session.session import Session
from tests import mariadb as mysql_server
from tests.cutting import Proxy, proxied
from tests.databases import fill
from tests.maxcompute import process as maxcompute_server

ROWS = 6000
CUTS = 10
TRAIN = (
    "SELECT x, y, kind, story FROM many TO TRAIN DNNClassifier WITH model.framework = torch,"
    " model.hidden_units = [4], train.epoch = 2, seed = 1 LABEL kind INTO {}"
)
PREDICT = (
    "SELECT * FROM many ORDER BY id TO PREDICT guesses.guess"
    " WITH predict.batch_size = 100, predict.num_workers = 2 USING alone"
)
AFTER = {
    "mariadb": 60_000,
    "postgresql": 400_000,
    "maxcompute": 4_000,
}  # bytes of answers, after which a connection is cut
SECRETS = {
    "mariadb": mysql_server.PASSWORD,
    "postgresql": mysql_server.PASSWORD,
    "maxcompute": maxcompute_server.SECRET,
}


class Looking(Silent):
    """Looks for a secret while a job runs: in command lines and names of processes, and in the files of a folder."""

    def __init__(self, secret: str, folder: Path) -> None:
        self.found: list[Path] = []
        self.files = 0
        self._secret = secret.encode()
        self._folder = folder

    def progress(self, event: object) -> None:
        self.look()

    def look(self) -> None:
        running = [path for path in Path("/proc").iterdir() if path.name.isdigit()]
        processes = [path / name for path in running for name in ("cmdline", "comm")]
        files = [path for path in self._folder.rglob("*") if path.is_file()]
        self.files = max(self.files, len(files))
        for path in (*processes, *files):
            with contextlib.suppress(OSError):  # it is gone again
                if self._secret in path.read_bytes():
                    self.found.append(path)


@dataclass(frozen=True)
class Shop:
    """A session with a server, by way of a proxy, and a table of some length there."""

    session: Session
    proxy: Proxy
    looking: Looking

    def rows(self, query: str) -> pa.Table:
        [found] = self.session.run(query)
        return found.to_arrow()


@pytest.fixture(scope="module", params=["mariadb", "postgresql", "maxcompute"])
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    server = request.getfixturevalue(request.param)
    state = tmp_path_factory.mktemp("state")
    looking = Looking(SECRETS[request.param], state)
    with pytest.MonkeyPatch.context() as patch, proxied(server.port, after=AFTER[request.param]) as proxy:
        patch.setenv("XDG_STATE_HOME", str(state))
        with Session(server.url(port=proxy.port), observer=looking) as session:
            fill(session, "many", many())
            list(session.run(TRAIN.format("alone")))
            yield Shop(session, proxy, looking)


def many() -> pa.Table:
    draw = np.random.default_rng(7)
    x, y = draw.normal(size=(2, ROWS))
    kinds = np.where(x > y, "above", "below")
    return pa.table({"id": range(ROWS), "x": x, "y": y, "kind": kinds, "story": ["word " * 18] * ROWS})


@pytest.mark.soak
def test_training_over_cut_connections_gives_the_weights_of_an_undisturbed_one(
    shop: Shop, tmp_path: Path
) -> None:
    shop.proxy.left = CUTS
    list(shop.session.run(TRAIN.format("cut")))
    assert shop.proxy.left == 0
    weights = []
    for name in ("alone", "cut"):
        shop.session.registry.load(name, tmp_path / name)
        weights.append(read_archive(tmp_path / name).weights())
    alone, cut = weights
    assert alone
    assert all(np.array_equal(alone[name], cut[name]) for name in alone)


@pytest.mark.soak
def test_a_job_over_cut_connections_writes_every_row_once_and_no_password(shop: Shop) -> None:
    """Two workers; the connections are cut while they, or we, read."""
    shop.proxy.left = CUTS
    list(shop.session.run(PREDICT))
    assert shop.proxy.left == 0
    counted = shop.rows("SELECT COUNT(*) AS n, COUNT(DISTINCT id) AS d, COUNT(guess) AS g FROM guesses")
    assert counted.to_pylist() == [{"n": ROWS, "d": ROWS, "g": ROWS}]
    listing = "SHOW TABLES"
    if shop.session.dialect == "postgres":
        listing = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    names = shop.rows(listing)[0].to_pylist()
    assert "guesses" in str(names)
    assert not [name for name in names if "_rows_" in name or "_pinned_" in name or "_stage_" in name]
    shop.looking.look()
    assert shop.looking.found == []
    assert shop.looking.files > 5
