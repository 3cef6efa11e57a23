"""bench/ is not part of the package; its tests find it beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
