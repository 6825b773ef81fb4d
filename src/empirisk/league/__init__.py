"""The league: kinds of machines compete on a table, and the winner is tested."""

from empirisk.league.learn import Listener, learn
from empirisk.league.result import Learned

__all__ = ["Learned", "Listener", "learn"]
