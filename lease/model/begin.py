#!/usr/bin/python3
"""Searches all runs of beginning histories, within bounds: breadth first, until no state is new.

rule.py proves the rule of one block, for which beginning a history is one step. Here it is what
the stores do (internal/engine/histories.go): a description and pages are written one by one, by
beginners that stop anywhere, and clients are granted slots of the pages meanwhile. The store
is set back to a backup, whole or in part, at its place ("set back") or at another one ("moved").
A write compares the content that was read before, so versions recur after a set-back.

A slot of a page under one history stands for the seconds of a grant: no slot may be used twice.
At the same place one exception is allowed: between a set-back and the next begin.

    begin.py             the right rule must hold in each configuration, searched completely
    begin.py -large      the same, in two that take minutes and gigabytes
    begin.py VARIANT     a wrong rule, see VARIANTS: prints the shortest run that breaks it
    begin.py -list       the names of the variants
"""

import sys
import time
from collections import deque, namedtuple

# Bounds, and how the server behaves.
Config = namedtuple("Config", "moves beginners clients attempts pages slots setbacks late compares",
                    defaults=(True, 2, 1, 1, 1, 1, 2, False, True))
RIGHT = {
    "moved, late writes": Config(late=True),
    "moved, places compared by reading only": Config(compares=False),
    "moved, two clients": Config(clients=2, setbacks=1),
    "moved, two pages": Config(pages=2, setbacks=1),
    "set back": Config(moves=False),
    "set back, late writes": Config(moves=False, late=True, setbacks=1),
}
LARGE = {
    "set back, two clients": Config(moves=False, clients=2, setbacks=1),
    "set back, two pages": Config(moves=False, pages=2, setbacks=1),
}
VARIANTS = {
    "help": ("a begin that somebody left is completed under its ID", Config(moves=False)),
    "resend": ("the completing write is repeated without a response", Config(moves=False)),
    "unread": ("a grant is used without reading the description after the write",
               Config(moves=False)),
    "unread_place": ("the same, and the write compares no place", Config(compares=False)),
    "repair": ("the same, and a page of another history is emptied for the known one", Config()),
    "unknown_matches": ("an unknown place equals every place", Config()),
}

wrong = sys.argv[1] if len(sys.argv) > 1 else ""
if wrong == "-list":
    sys.exit(print(*VARIANTS))
searched = RIGHT
if wrong == "-large":
    wrong, searched = "", LARGE
elif wrong in VARIANTS:
    searched = {wrong: VARIANTS[wrong][1]}
elif wrong:
    sys.exit(f"no such variant: {wrong}")

UNKNOWN = 0  # a place
BEGINNING, COMPLETE = range(2)  # the phases of a description
Description = namedtuple("Description", "history phase place writes")
Page = namedtuple("Page", "history granted")
# What a process has read, and where it stands: its next step, and the page that it works on.
Beginner = namedtuple("Beginner", "step history page seen place attempts",
                      defaults=("idle", 0, 0, (), 0, 0))
Client = namedtuple("Client", "step history page seen place", defaults=("idle", 0, 0, (), 0))
State = namedtuple("State", "description pages place backup used drawn beginners clients "
                            "setbacks noticed late")  # late: (), then a write, then None


def replaced(items, i, item):
    return items[:i] + (item,) + items[i + 1:]


def search(c):
    """Returns the shortest run that uses a slot twice, or None, and the number of states."""
    start = State(Description(1, COMPLETE, 1, 0), (Page(1, 0),) * c.pages, 1, (), frozenset(), 1,
                  (Beginner(),) * c.beginners, (Client(),) * c.clients, 0, True, ())
    came, queue = {start: None}, deque([start])
    while queue:
        state = queue.popleft()
        for event, after in steps(c, state):
            if after is None:
                run = [event]
                while came[state]:
                    event, state = came[state]
                    run.append(event)
                return run[::-1], len(came)
            # Processes of a kind are interchangeable.
            after = after._replace(beginners=tuple(sorted(after.beginners)),
                                   clients=tuple(sorted(after.clients)))
            if after not in came:
                came[after] = event, state
                queue.append(after)
    return None, len(came)


def here(state, place):
    """A place that was read is the store's."""
    return place == state.place != UNKNOWN or wrong == "unknown_matches" and UNKNOWN in (
        place, state.place)


def steps(c, state):
    for i in range(c.beginners):
        yield from beginner(c, state, i)
    for i in range(c.clients):
        yield from client(c, state, i)
    yield from store(c, state)


def beginner(c, s, i):
    b, d = s.beginners[i], s.description

    def to(step, state=s, **changes):
        return state._replace(beginners=replaced(
            state.beginners, i, b._replace(step=step, **changes)))

    idle = s._replace(beginners=replaced(s.beginners, i, Beginner(attempts=b.attempts)))
    allowed = here(s, b.place) or not c.compares

    def write(what, **changes):
        """The write arrives; a copy of it may stay on its way."""
        yield s._replace(**changes)
        if c.late and s.late == ():
            yield s._replace(late=(what, b.seen, b.place, *changes.items()), **changes)

    match b.step:
        case "idle" if b.attempts < c.attempts:
            if wrong == "help" and d.phase == BEGINNING and here(s, d.place):
                yield (f"a beginner completes the begin of history {d.history}",
                       to("page", history=d.history, place=s.place, attempts=b.attempts + 1))
            # A process reads its place with the description; an unknown one stays so.
            yield (f"a beginner reads the description, draws history {s.drawn + 1}",
                   to("begin", s._replace(drawn=s.drawn + 1), history=s.drawn + 1, seen=d,
                      place=s.place, attempts=b.attempts + 1))
        case "begin" if d == b.seen and allowed:
            for after in write("description", description=Description(
                    b.history, BEGINNING, b.place, d.writes + 1)):
                yield f"history {b.history} is beginning", to("page", after, seen=())
        case "page" if b.page == c.pages:
            yield f"history {b.history}: all pages are empty", to("finish")
        case "page" if s.pages[b.page].history == b.history:
            yield f"history {b.history}: page {b.page} is empty", to("page", page=b.page + 1)
        case "page":
            yield f"history {b.history}: reads page {b.page}", to("check", seen=s.pages[b.page])
        case "check" if d.history == b.history:
            yield f"history {b.history}: the description is unchanged", to("empty")
        case "empty" if s.pages[b.page] != b.seen:
            yield f"history {b.history}: page {b.page} has changed", to("page", seen=())
        case "empty" if allowed:
            for after in write(b.page, pages=replaced(s.pages, b.page, Page(b.history, 0))):
                yield f"history {b.history}: empties page {b.page}", to("page", after, seen=())
        case "finish" if d.history == b.history and d.phase == BEGINNING:
            yield f"history {b.history}: reads the description", to("complete", seen=d)
        case "complete" if d == b.seen and allowed:
            for after in write("description", noticed=True, description=Description(
                    b.history, COMPLETE, d.place, d.writes + 1)):
                yield f"history {b.history} is complete", after._replace(beginners=idle.beginners)
                if wrong == "resend":
                    yield (f"history {b.history} is complete, without a response",
                           to("finish", after, seen=()))
        case "idle":
            pass
        case _:
            yield f"history {b.history}: its beginner stops", idle


def client(c, s, i):
    k, d = s.clients[i], s.description

    def to(client, state=s):
        return state._replace(clients=replaced(state.clients, i, client))

    def use(page, granted):
        slot = k.history, page, granted
        what = f"a client uses slot {granted} of page {page} of history {k.history}"
        if slot not in s.used:
            return what, to(Client(), s._replace(used=s.used | {slot}))
        return (what + " again", None if c.moves or s.noticed else to(Client()))

    current = d.history == k.history and d.phase == COMPLETE and here(s, d.place)
    match k.step:
        case "idle" if d.phase == COMPLETE and here(s, d.place):
            yield (f"a client reads the description of history {d.history}",
                   to(Client("read", d.history, place=s.place)))
        case "read":
            for n, page in enumerate(s.pages):
                if page.history == k.history and page.granted <= c.slots:
                    yield (f"a client reads page {n}",
                           to(k._replace(step="write", page=n, seen=page)))
                elif page.history != k.history and wrong == "repair":
                    yield (f"a client empties page {n} for history {k.history}",
                           s._replace(pages=replaced(s.pages, n, Page(k.history, 0))))
            yield "a client gives up", to(Client())
        case "write" if s.pages[k.page] == k.seen and (here(s, k.place) or not c.compares):
            granted = k.seen.granted
            after = s._replace(pages=replaced(s.pages, k.page, Page(k.history, granted + 1)))
            if wrong in ("unread", "unread_place", "repair"):
                what, used = use(k.page, granted)
                yield what, used and used._replace(pages=after.pages)
            else:
                yield (f"a client writes slot {granted} of page {k.page}",
                       to(k._replace(step="after"), after))
        case "after" if current and here(s, k.place):
            yield use(k.page, k.seen.granted)
        case "idle":
            pass
        case _:
            yield "a client drops its request", to(Client())


def store(c, s):
    if not s.backup:
        yield "backup", s._replace(backup=(s.description, s.pages))
    elif s.setbacks < c.setbacks:
        description, pages = s.backup
        back = s._replace(setbacks=s.setbacks + 1, noticed=False)
        if c.moves:
            # Each place that is known is another one.
            for place in s.setbacks + 2, *([UNKNOWN] if wrong == "unknown_matches" else []):
                yield (f"the store moves to place {place}, as in the backup",
                       back._replace(description=description, pages=pages, place=place))
        else:
            yield "set back", back._replace(description=description, pages=pages)
            yield "description set back", back._replace(description=description)
            for n, page in enumerate(pages):
                yield f"page {n} set back", back._replace(pages=replaced(s.pages, n, page))
    if s.late:
        what, seen, place, *changes = s.late
        stored = s.description if what == "description" else s.pages[what]
        if stored == seen and (here(s, place) or not c.compares):
            changes = {name: value for name, value in changes if name != "noticed"}
            if what != "description":  # only the one page
                changes = {"pages": replaced(s.pages, what, changes["pages"][what])}
            yield f"a write arrives again: {what}", s._replace(late=None, **changes)


failed = False
for name, c in searched.items():
    began = time.time()
    run, states = search(c)
    print(f"{name:40} {states:8} states {time.time() - began:4.0f} s:",
          "; ".join(run) if run else "holds", flush=True)
    failed |= bool(run) != bool(wrong)
sys.exit(failed)
