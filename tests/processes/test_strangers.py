"""A node that was formatted for another cluster, and is pointed at our controllers."""

from __future__ import annotations

import shutil
from pathlib import Path

from real_cluster import until
from real_controllers import Controllers

OTHER = "T3RoZXJDbHVzdGVySWRfXw"


def test_a_node_of_another_cluster_is_told_so_and_takes_no_part(tmp_path: Path) -> None:
    controllers = Controllers(tmp_path)
    try:
        shutil.rmtree(controllers.data(2))
        controllers.run(
            *("format", f"--config={controllers.config(2)}", f"--cluster-id={OTHER}"),
            "--no-initial-controllers",
        )
        controllers.start(1)
        until(controllers.serve)
        before = controllers.quorum()
        controllers.start(2)
        controllers.start(3)
        until(lambda: 3 in controllers.observers())

        def said(number: int, sentence: str) -> bool:
            return sentence in (tmp_path / f"journal-{number}").read_text()

        until(lambda: said(1, f"a node of another cluster, {OTHER}, asks the quorum"))
        until(lambda: said(2, "of the quorum belongs to another cluster"))
        assert controllers.observers() == [3]
        after = controllers.quorum()
        assert (after["leader"], after["leader_epoch"]) == (1, before["leader_epoch"])
        assert (tmp_path / "journal-1").read_text().count("another cluster") == 1, "said once"
    finally:
        controllers.stop()
