"""The contracts as functions, shipped so that users can run them on their own norms, oracles and loaders."""

from overexplain.testing.loaders import check_loader
from overexplain.testing.norms import check_norm
from overexplain.testing.oracles import check_oracle

__all__ = ["check_loader", "check_norm", "check_oracle"]
