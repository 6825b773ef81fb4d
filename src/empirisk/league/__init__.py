"""The league: kinds of machines compete on a table, and the winner is tested."""

from empirisk.extras import need

need("er.learn", "learn", "polars", "matplotlib", "jinja2")

from empirisk.league.events import Event, Listener
from empirisk.league.jobs import Job
from empirisk.league.learn import learn
from empirisk.league.request import Request
from empirisk.league.result import Learned

__all__ = ["Event", "Job", "Learned", "Listener", "Request", "learn"]
