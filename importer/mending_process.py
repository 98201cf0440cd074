"""A process beside the program in which its modules are mended.

Trees and facts of hundreds of modules are many objects. In the program they would be looked at by each collection of
its garbage and taken apart when it ends, which costs as much as the mending; here nothing is collected, and they go
with the process.

Meanwhile it works ahead of the program, where there is a second processor for it.

It is begun before any of the program's code runs, as a copy of a process that has one thread, and belongs to no
process that the program could wait for. It ends with the program, or before it once nothing was asked for a while.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from io import FileIO, RawIOBase
from typing import Any, NamedTuple, NoReturn

from graphmend.importer.ahead import Ahead
from graphmend.importer.outcome import Outcome, Texts
from graphmend.importer.text_mender import Surroundings

#: what an answer of the process begins with; other words are names of questions in `Texts`
_DONE = "done"
#: bytes that say how long what follows is
_LENGTH = 8

#: seconds in which a program that gets one file asks for the next one, if it is to wait for all
_SOON = 0.02
#: a program that has imported nothing for so long gets the memory of the process back
IDLE_SECONDS = 60.0


class Gone(Exception):
    """The process cannot be asked (any more)."""


class Request(NamedTuple):
    """A file to be mended."""

    text: str
    path: str
    around: Surroundings
    news: dict[str, str]
    """Texts that run in the program since the last request, by path."""


class Expected(NamedTuple):
    """A file for which there will be a request."""

    path: str
    around: Surroundings
    by_program: bool
    """Is it not imported for another such file?"""


class MendingProcess:
    """Mends as a `TextMender` does, elsewhere."""

    def __init__(self, requests: RawIOBase, answers: RawIOBase) -> None:
        self._requests, self._answers = requests, answers
        self._pipes = [(file.fileno(), _identity(file.fileno())) for file in (requests, answers)]
        self._owner = os.getpid()
        self._told: dict[str, str] = {}
        self._turn = threading.Lock()
        self._asking: int | None = None
        """The thread that has the turn."""

    def mend(
        self, text: str, path: str, texts: Texts, around: Surroundings, overlay: Mapping[str, str]
    ) -> tuple[Outcome, Mapping[str, str]]:
        """As `TextMender.mend`, with the texts that run by now; raises `Gone`."""
        with self._in_turn():
            news = {other: now for other, now in overlay.items() if self._told.get(other) != now}
            self._say(Request(text, path, around, news))
            self._told |= news
            while True:
                kind, value = _receive(self._answers)
                if kind == _DONE:
                    return value[0], value[1]
                self._say(getattr(texts, kind)(value))

    def order(self) -> list[str]:
        """The files that were looked at, in order; raises `Gone`."""
        with self._in_turn():
            self._say(None)
            answer: list[str] = _receive(self._answers)
            return answer

    def expect(self, path: str, around: Surroundings, by_program: bool) -> None:
        """The program will ask for this file. A hint: where the process cannot take it at once it is not given."""
        said = _packed(Expected(path, around, by_program))
        if len(said) > select.PIPE_BUF or self._turn.locked():
            return
        with contextlib.suppress(Gone), self._in_turn():
            state = select.poll()
            state.register(self._pipes[0][0], select.POLLOUT)
            if state.poll(0):
                self._requests.write(said)

    @contextlib.contextmanager
    def _in_turn(self) -> Iterator[None]:
        """Nobody else speaks with the process meanwhile. What goes wrong is `Gone`, and ends it."""
        if os.getpid() != self._owner or not all(self._is_ours(*pipe) for pipe in self._pipes):
            raise Gone  # the program has forked, and the pipe is its parent's; or it has closed what it did not know
        if self._is_over():
            raise Gone
        if self._asking == threading.get_ident():
            raise Gone  # a signal handler that imports, in the middle of a request
        with self._turn:
            self._asking = threading.get_ident()
            try:
                yield
            except BaseException as error:  # Ctrl-C as well: the answer to this request would be taken for the next one
                self.end()
                if isinstance(error, (OSError, EOFError, ValueError, pickle.UnpicklingError)):
                    raise Gone from error
                raise
            finally:
                self._asking = None

    def end(self) -> None:
        for number, identity in self._pipes:
            if self._is_ours(number, identity):
                os.close(number)

    def _is_over(self) -> bool:
        """Has the process ended? To write to it would be a SIGPIPE, which the program may let end itself."""
        state = select.poll()
        state.register(self._pipes[0][0], 0)
        return bool(state.poll(0))

    @staticmethod
    def _is_ours(number: int, identity: tuple[int, int] | None) -> bool:
        """Is this still the pipe, and not a file of the program's that has got its number?"""
        return identity is not None and _identity(number) == identity

    def _say(self, what: object) -> None:
        _send(self._requests, what)


def _identity(number: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(number)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def begin(prepare: Callable[[], Ahead]) -> MendingProcess | None:
    """Begins the process, which prepares its work itself; None where there is no such thing, or where it would be in
    the program's way."""
    if sys.platform != "linux" or threading.active_count() > 1 or os.getpid() == 1:
        return None  # a process without a parent becomes a child of the first one; elsewhere it was not measured
    opened: list[int] = []
    try:
        opened += [*os.pipe(), *os.pipe()]
        child = os.fork() if min(opened) > 2 else -1  # what has no standard streams may take the pipe for one
    except OSError:
        child = -1
    if child < 0:
        for number in opened:
            os.close(number)
        return None
    requests, answers = (opened[0], opened[1]), (opened[2], opened[3])
    if child == 0:
        _run(prepare, requests, answers)
    os.close(requests[0])
    os.close(answers[1])
    with contextlib.suppress(ChildProcessError):  # where SIGCHLD is ignored the system has taken it away
        os.waitpid(child, 0)  # it has left its own child to the system
    process = MendingProcess(FileIO(requests[1], "wb", closefd=False), FileIO(answers[0], "rb", closefd=False))
    os.register_at_fork(after_in_child=process.end)
    return process


def _run(prepare: Callable[[], Ahead], requests: tuple[int, int], answers: tuple[int, int]) -> NoReturn:
    """Everything that the new process does; none of the program's exit handlers run in it."""
    try:
        os.setsid()  # the terminal's signals are the program's
        if os.fork() == 0:
            _let_go(requests[0], answers[1])
            threading.Thread(target=_end_with, args=(answers[1],), daemon=True).start()
            with FileIO(requests[0], "rb") as asked, FileIO(answers[1], "wb") as told:
                _serve(prepare(), asked, told)
    except BaseException:  # whatever it is, the program mends by itself then
        os._exit(1)
    os._exit(0)


def _let_go(*kept: int) -> None:
    """Lets go of the program's files: who reads what it writes waits until nobody can write any more."""
    first, last = sorted(kept)
    for start, end in ((3, first), (first + 1, last), (last + 1, max(1024, last + 2))):
        os.closerange(start, end)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    os.close(nothing)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()


def _end_with(answers: int) -> NoReturn:
    """Ends the process, in the middle of a mend as well, once nobody is left to read its answers."""
    gone = select.poll()
    gone.register(answers, 0)  # errors alone, which are always told
    gone.poll()
    os._exit(0)


class _Asked:
    """The program's texts, asked for over the pipe."""

    def __init__(self, asked: RawIOBase, told: RawIOBase) -> None:
        self._asked, self._told = asked, told

    def now(self, path: str) -> str | None:
        return self._ask("now", path)

    def original(self, path: str) -> str | None:
        return self._ask("original", path)

    def _ask(self, kind: str, path: str) -> str | None:
        _send(self._told, (kind, path))
        known: str | None = _receive(self._asked)
        return known


class _Requests:
    """What the program asks for, one at a time; what can be answered at once is."""

    def __init__(self, ahead: Ahead, asked: RawIOBase, told: RawIOBase) -> None:
        self._ahead, self._asked, self._told = ahead, asked, told
        self._next: Request | None = None

    def hear(self, seconds: float = 0.0) -> bool:
        """Takes what is said by then, up to the next request. False where nothing is, EOFError where nothing comes."""
        heard = False
        while self._next is None and select.select([self._asked], [], [], 0.0 if heard else seconds)[0]:
            heard = True
            said: Request | Expected | None = _receive(self._asked)
            if isinstance(said, Request):
                self._next = said
            elif said is None:
                _send(self._told, self._ahead.order())
            else:
                sys.path[:] = said.around.search
                self._ahead.expect(*said)
        return heard or self._next is not None

    def now(self, seconds: float = 0.0) -> Request | None:
        """What is asked for at this time, or soon."""
        self.hear(seconds)
        return self._next

    def take(self) -> Request:
        assert self._next is not None
        taken, self._next = self._next, None
        return taken


def _serve(ahead: Ahead, asked: RawIOBase, told: RawIOBase) -> None:
    texts, requests = _Asked(asked, told), _Requests(ahead, asked, told)
    sys.path[:] = map(os.path.abspath, sys.path)  # as `Surroundings` have it
    has_time = len(os.sched_getaffinity(0)) > 1

    def waits(mended: str) -> bool:
        """Does the program wait for another file than the one that is mended? It gets what is ready."""
        pause = 0.0
        while (request := requests.now(pause)) is not None and request.path != mended:
            done = ahead.ready(*request) if list(request.around.search) == sys.path else None
            if done is None:
                return True
            requests.take()
            _send(told, (_DONE, done))
            ahead.follow(request.text, request.path)
            pause = _SOON
        return False

    pause = 0.0
    while True:
        try:
            while requests.now(pause) is None:
                pause = 0.0
                if not (has_time and ahead.step(waits)) and not requests.hear(IDLE_SECONDS):
                    ahead.keep_waiting()
                    return
        except EOFError:
            return
        text, path, around, news = requests.take()
        sys.path[:] = around.search
        try:
            ahead.told(news)
            done = ahead.mend(text, path, texts, around)
        except (OSError, EOFError):
            raise
        except Exception as error:
            done = Outcome.failed(error), {}
        _send(told, (_DONE, done))
        ahead.follow(text, path)
        pause = _SOON


def _send(pipe: RawIOBase, what: object) -> None:
    """Nothing is kept back: a copy of this process must not send it once more."""
    left = memoryview(_packed(what))
    while left:
        left = left[pipe.write(left) or 0 :]


def _packed(what: object) -> bytes:
    data = pickle.dumps(what, pickle.HIGHEST_PROTOCOL)
    return len(data).to_bytes(_LENGTH, "big") + data


def _receive(pipe: RawIOBase) -> Any:
    """Takes no more from the pipe than what was sent at once: whether there is more must be seen by `select`."""
    return pickle.loads(_exactly(pipe, int.from_bytes(_exactly(pipe, _LENGTH), "big")))


def _exactly(pipe: RawIOBase, count: int) -> bytes:
    parts: list[bytes] = []
    while count:
        part = pipe.read(count)
        if not part:
            raise EOFError
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
