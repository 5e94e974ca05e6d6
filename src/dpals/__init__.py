"""Recommender models under user-level joint differential privacy.

The names below are the public interface. They are loaded on first use, so that ``import dpals`` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpals.methods.base.registry import METHODS
from dpals.version import __version__ as __version__

if TYPE_CHECKING:
    from dpals import testing as testing
    from dpals.data import datasets as datasets
    from dpals.data import simulate as simulate
    from dpals.data.blocks.folder import Blocks as Blocks
    from dpals.data.blocks.folder import open_blocks as open_blocks
    from dpals.data.blocks.writer import write_blocks as write_blocks
    from dpals.data.ratings import Ratings as Ratings
    from dpals.data.read import read_ratings as read_ratings
    from dpals.engines import spark as spark
    from dpals.errors import InputError as InputError
    from dpals.evaluation.held_out import evaluate as evaluate
    from dpals.ledger.hash_chain import LedgerDamaged as LedgerDamaged
    from dpals.ledger.ledger import Ledger as Ledger
    from dpals.methods.ada_dpals import AdaDPALS as AdaDPALS
    from dpals.methods.als import ALS as ALS
    from dpals.methods.base.options import Options as Options
    from dpals.methods.base.options import Step as Step
    from dpals.methods.biases import PrivateBiases as PrivateBiases
    from dpals.methods.dp_sgd import DPSGD as DPSGD
    from dpals.methods.dp_svd import DPSVD as DPSVD
    from dpals.methods.dpals import DPALS as DPALS
    from dpals.methods.frank_wolfe import DPFrankWolfe as DPFrankWolfe
    from dpals.methods.means import GlobalMean as GlobalMean
    from dpals.methods.means import ItemMean as ItemMean
    from dpals.methods.means import UserMean as UserMean
    from dpals.methods.pooled.pooled_dpals import PooledDPALS as PooledDPALS
    from dpals.methods.popularity import Popularity as Popularity
    from dpals.methods.private_search import PrivateSearch as PrivateSearch
    from dpals.methods.sgld import SGLD as SGLD
    from dpals.methods.stagewise_als import StagewiseALS as StagewiseALS
    from dpals.methods.trace_norm import TraceNorm as TraceNorm
    from dpals.model.factor_model import FactorModel as FactorModel
    from dpals.model.factor_model import load as load
    from dpals.release import accounting as accounting
    from dpals.release.accounting import Budget as Budget
    from dpals.release.accounting import PrivacyBudgetExceeded as PrivacyBudgetExceeded
    from dpals.statement.record import Statement as Statement

_HOMES = {
    **{method.name: method.module for method in METHODS},
    "Blocks": "dpals.data.blocks.folder",
    "Budget": "dpals.release.accounting",
    "FactorModel": "dpals.model.factor_model",
    "InputError": "dpals.errors",
    "Ledger": "dpals.ledger.ledger",
    "LedgerDamaged": "dpals.ledger.hash_chain",
    "Options": "dpals.methods.base.options",
    "PrivacyBudgetExceeded": "dpals.release.accounting",
    "Ratings": "dpals.data.ratings",
    "Statement": "dpals.statement.record",
    "Step": "dpals.methods.base.options",
    "accounting": "dpals.release.accounting",
    "datasets": "dpals.data.datasets",
    "evaluate": "dpals.evaluation.held_out",
    "load": "dpals.model.factor_model",
    "open_blocks": "dpals.data.blocks.folder",
    "read_ratings": "dpals.data.read",
    "simulate": "dpals.data.simulate",
    "spark": "dpals.engines.spark",
    "testing": "dpals.testing",
    "write_blocks": "dpals.data.blocks.writer",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dpals' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    return home if home.__name__.endswith(f".{name}") else getattr(home, name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
