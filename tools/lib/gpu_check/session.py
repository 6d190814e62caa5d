"""Runs the pieces of a check, one after the other, within a budget of time.

    session = Session(budget_s=520, tell=print)
    session.run(Piece("ops_gpu_test", "tests", limit_s=60, work=work))
    session.results                   # the result of each
    session.failed()

`work(limit_s)` returns a Result; an exception fails that piece alone. A piece
begins only if the budget has its whole limit left, so that the end of the
budget interrupts none; a piece that does not fit is reported as skipped.
"""

import collections
import time
import traceback

OK, FAILED, SKIPPED = "ok", "FAILED", "skipped"

Piece = collections.namedtuple("Piece", "name group limit_s work")


class Result:
    """The result of a piece: a state, words, and details for the JSON file."""

    def __init__(self, state, words, **details):
        self.state, self.words, self.details = state, words, details
        self.name = self.group = None
        self.seconds = 0.0

    def to_json(self):
        return {"name": self.name, "group": self.group, "result": self.state,
                "seconds": round(self.seconds, 2), "says": self.words,
                **self.details}


class Session:

    def __init__(self, budget_s, tell=lambda result: None,
                 clock=time.monotonic):
        self._budget_s, self._tell, self._clock = budget_s, tell, clock
        self._begin = clock()
        self.results = []

    def spent_s(self):
        return self._clock() - self._begin

    def left_s(self):
        return self._budget_s - self.spent_s()

    def run(self, piece):
        begin = self._clock()
        if self.left_s() < piece.limit_s:
            result = Result(SKIPPED, "%.0f s are left, it may need %.0f" % (
                max(0, self.left_s()), piece.limit_s))
        else:
            try:
                result = piece.work(piece.limit_s)
            except Exception as why:  # pylint: disable=broad-except
                result = Result(FAILED, "gpu_check itself: %r" % why,
                                output=traceback.format_exc())
        result.name, result.group = piece.name, piece.group
        result.seconds = self._clock() - begin
        self.results.append(result)
        self._tell(result)
        return result

    def failed(self):
        return [result for result in self.results if result.state == FAILED]
