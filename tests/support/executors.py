"""An executor for tests."""

from concurrent.futures import Executor, Future


class Inline(Executor):
    """Runs tasks at once, in this process."""

    def submit(self, fn, /, *args, **kwargs):
        """Run a task and return its result."""
        future: Future[object] = Future()
        future.set_result(fn(*args, **kwargs))
        return future
