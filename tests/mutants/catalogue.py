"""Every planted bug, by name."""

from __future__ import annotations

from typing import Final

from tests.mutants.in_controller import CONTROLLER_MUTANTS
from tests.mutants.in_groups import GROUP_MUTANTS
from tests.mutants.in_log import LOG_MUTANTS
from tests.mutants.in_node import NODE_MUTANTS
from tests.mutants.in_partition import PARTITION_MUTANTS
from tests.mutants.in_quorum import QUORUM_MUTANTS
from tests.mutants.in_transactions import TRANSACTION_MUTANTS
from tests.mutants.mutant import Mutant

MUTANTS: Final[dict[str, Mutant]] = {
    mutant.name: mutant
    for mutant in (
        *PARTITION_MUTANTS,
        *CONTROLLER_MUTANTS,
        *QUORUM_MUTANTS,
        *NODE_MUTANTS,
        *LOG_MUTANTS,
        *TRANSACTION_MUTANTS,
        *GROUP_MUTANTS,
    )
}
