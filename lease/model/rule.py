#!/usr/bin/python3
"""Proves the lease rule without bounds, with z3 (apt-get install python3-z3).

The rule is a set of steps between states of one block: what the store does
(internal/engine/block.go), what a Keeper makes of a response (answer.go), and what goes wrong
around them: messages that are lost, late or repeated, clocks that show any time, processes that
end or are copied, and a store that is set back to anything, at another place or unnoticed. An
invariant must hold at the start and, whenever it holds before a step, after it. Each step is
checked from every state that satisfies the invariant, so the number of processes, renewals,
copies, histories, messages and times has no bound.

    rule.py             the rule must be inductive, and each step possible
    rule.py VARIANT     a wrong rule, see VARIANTS: the invariant must fail
    rule.py -list       the names of the variants

A *life* is a generator with its Keeper. A copy of a process is another life. A *grant* is known
by the version with which the store wrote it. A history is *tainted* if the store was set back
to it and its place did not change.
"""

import sys
import time

from z3 import (And, BoolSort, BoolVal, Const, Consts, DeclareSort, ForAll, Function, If, Implies,
                Int, IntSort, Ints, Not, Or, Solver, sat, unsat)

VARIANTS = {
    "last_start": "a block is free from its last start instead of its last end",
    "inclusive_end": "the second at the end of a grant is used",
    "end_assumed": "without a response, the requested end is assumed",
    "any_holder": "a renewal by any life is adopted",
    "start_ignored": "the nonce of its own Acquire is trusted, although the start is another",
    "shortened": "a renewal may be confirmed with an earlier end than before",
    "unchecked": "Renew compares no version",
    "acquire_unchecked": "Acquire does not compare the history",
    "renew_unchecked": "Renew does not compare the history",
    "key_replaced": "a grant is used under the key of another history than its own",
    "numbered": "histories are numbered by a counter in the store, which a backup sets back",
    "door_open": "a begin keeps the history's ID",
    "acquire_elsewhere": "Acquire does not compare the place",
    "found_elsewhere": "a repeated Acquire takes what another place shows",
    "renew_elsewhere": "Renew does not compare the place",
    "read_elsewhere": "Get does not compare the place",
    "begin_again": "a begin is completed under an ID that was begun before",
    "taint_forgotten": "a set-back that nobody notices is no exception",
    "drawn_early": "the nonce of a renewal is drawn before a copy is made, and used after it",
}

wrong = sys.argv[1] if len(sys.argv) > 1 else ""
if wrong == "-list":
    sys.exit(print(*VARIANTS))
if wrong and wrong not in VARIANTS:
    sys.exit(f"no such variant: {wrong}")

Life, Nonce, History = DeclareSort("Life"), DeclareSort("Nonce"), DeclareSort("History")
I, B = IntSort(), BoolSort()
NEW, ASKING, HOLDING, OVER = range(4)  # the phases of a life
NOTHING, ACQUIRE, RENEW = range(3)  # what wrote the block last

FIELDS = {
    # the block
    "history": (History,),  # in the page's header
    "here": (B,),  # the place is the one at which the history was begun
    "tainted": (History, B),  # the store was set back to it at its place
    "begun": (History, B),  # the histories that were ever begun
    "S": (I,), "E": (I,),  # start and end of the last grant
    "V": (I,), "G": (I,),  # its version, and the version of the last grant
    "wrote": (I,), "nonce": (Nonce,),  # what wrote it last, with which nonce
    # lives
    "phase": (Life, I),
    "key": (Life, History),  # it encrypts IDs under the key of this history
    "bid": (Life, Nonce),  # of its Acquire; a copy has the same
    "grant": (Life, I),  # the version with which it was granted
    "start": (Life, I), "end": (Life, I), "ver": (Life, I),  # what it knows of the block
    "used": (Life, I),  # the last second for which it made an ID, or start - 1
    "pending": (Life, Nonce, B),  # proposed since the confirmed state
    # A life is alone if it had a grant before it was ever copied, or has a confirmed write with a
    # nonce that it drew after it was last copied.
    "alone": (Life, B),
    # messages, which may be delivered at any time and any number of times
    "asked": (Nonce, B), "forWhom": (Nonce, History),  # Acquire
    "sent": (Nonce, B), "author": (Nonce, Life), "seen": (Nonce, I), "under": (Nonce, History),
    "ofGrant": (Nonce, I),  # Renew: for which grant, and the version that it compares
    "own": (Nonce, B),  # its author was not copied since
}


class State:
    """The value of every field before a step, or after it."""

    def __init__(self, tick):
        for name, sorts in FIELDS.items():
            declare = Const if len(sorts) == 1 else Function
            setattr(self, name, declare(name + tick, *sorts))


a, b = State(""), State("'")  # before and after
h, g, k, copy = Consts("h g k copy", Life)
n, m = Consts("n m", Nonce)
past = Const("past", History)
at, until = Ints("at until")  # chosen freely: no clock is assumed


def granted(s, x):
    return Or(s.phase(x) == HOLDING, s.phase(x) == OVER)


def now(s, x):
    """The life x has a grant of the store's present history."""
    return And(s.here, granted(s, x), s.key(x) == s.history, Not(s.tainted(s.history)))


def limit(s, x):
    """The first second that x will never use."""
    return If(s.phase(x) == HOLDING, s.end(x), s.used(x) + 1)


def invariant(s):
    last = And(now(s, h), s.grant(h) == s.G)  # h has the last grant
    former = And(now(s, h), s.grant(h) < s.G)
    both = And(granted(s, h), granted(s, g), s.key(h) == s.key(g), h != g,
               Not(s.tainted(s.key(h))))
    return {
        # The goals. Two lives under the key of one history, which is not tainted, share no second
        # if their grants differ.
        "grants are disjoint": ForAll([h, g], Implies(
            And(both, s.grant(h) < s.grant(g)), limit(s, h) <= s.start(g))),
        # Of the copies of a life at most one is alone, so at most one goes on.
        "one copy is alone": ForAll([h, g], Implies(
            And(both, s.grant(h) == s.grant(g)), Not(And(s.alone(h), s.alone(g))))),

        "block": And(s.S <= s.E, 0 <= s.G, s.G <= s.V, s.begun(s.history)),
        "tainted": ForAll([past], Implies(s.tainted(past), s.begun(past))),
        "life": ForAll([h], And(
            NEW <= s.phase(h), s.phase(h) <= OVER,
            Implies(s.phase(h) != NEW, And(
                s.begun(s.key(h)), s.asked(s.bid(h)), s.forWhom(s.bid(h)) == s.key(h))),
            Implies(granted(s, h), s.start(h) <= s.used(h) + 1),
            Implies(s.phase(h) == HOLDING, And(s.used(h) < s.end(h), s.start(h) < s.end(h))),
            Implies(now(s, h), And(
                1 <= s.grant(h), s.grant(h) <= s.G, s.grant(h) <= s.ver(h), s.ver(h) <= s.V)))),
        "last": ForAll([h], Implies(last, And(
            s.start(h) == s.S, limit(s, h) <= s.E))),
        "former": ForAll([h], Implies(former, And(
            s.ver(h) < s.G, limit(s, h) <= s.S))),
        # A grant goes to the lives with one bid: a life and the copies that it had before.
        "bid": ForAll([h, g], Implies(
            And(both, s.grant(h) == s.grant(g)), s.bid(h) == s.bid(g))),
        "asked": ForAll([n], Implies(s.asked(n), s.begun(s.forWhom(n)))),
        "renewals": ForAll([n], Implies(s.sent(n), And(
            s.begun(s.under(n)),
            Implies(And(s.here, s.under(n) == s.history, Not(s.tainted(s.history))), And(
                1 <= s.ofGrant(n), s.ofGrant(n) <= s.G, s.ofGrant(n) <= s.seen(n),
                s.seen(n) <= s.V, Implies(s.ofGrant(n) < s.G, s.seen(n) < s.G)))))),
        "pending": ForAll([h, n], Implies(s.pending(h, n), And(
            s.phase(h) == HOLDING, s.sent(n), s.under(n) == s.key(h), s.seen(n) == s.ver(h),
            s.ofGrant(n) == s.grant(h), Implies(s.own(n), s.author(n) == h)))),
        "one's own": ForAll([h, n], And(
            Implies(And(s.asked(n), s.own(n), s.bid(h) == n, s.phase(h) != NEW), s.author(n) == h),
            Implies(And(now(s, h), s.ver(h) == s.V, s.wrote == RENEW, s.own(s.nonce)),
                    s.author(s.nonce) == h),
            Implies(And(s.alone(h), s.pending(h, n), Not(s.tainted(s.key(h)))), s.own(n)))),
        "alone by what": ForAll([h], Implies(And(now(s, h), s.alone(h)), And(
            Implies(s.ver(h) == s.grant(h), s.own(s.bid(h))),
            Implies(And(s.ver(h) == s.V, s.wrote == RENEW), s.own(s.nonce))))),
        # A life that is alone knows a version that no copy knows or learns.
        "alone": ForAll([h, g], Implies(
            And(both, s.here, s.key(h) == s.history, s.grant(h) == s.grant(g), s.alone(h)),
            s.ver(g) < s.ver(h))),
        # What wrote the block last.
        "wrote": And(
            NOTHING <= s.wrote, s.wrote <= RENEW,
            Implies(s.wrote == ACQUIRE, And(s.G == s.V, s.V >= 1, s.asked(s.nonce),
                                            s.forWhom(s.nonce) == s.history)),
            Implies(s.wrote != ACQUIRE, Or(s.G < s.V, s.V == 0)),
            Implies(s.wrote == RENEW, And(
                s.sent(s.nonce), s.under(s.nonce) == s.history, s.seen(s.nonce) + 1 == s.V,
                Or(Not(s.here), s.tainted(s.history), s.ofGrant(s.nonce) == s.G)))),
        "bidder": ForAll([h], Implies(And(last, s.wrote == ACQUIRE), s.bid(h) == s.nonce)),
    }


def unchanged(*changed):
    """The fields that a step does not change."""
    for name, sorts in FIELDS.items():
        if name in changed:
            continue
        old, new = getattr(a, name), getattr(b, name)
        if len(sorts) == 1:
            yield old == new
        else:
            keys = [Const(f"of {name} {i}", sort) for i, sort in enumerate(sorts[:-1])]
            yield ForAll(keys, new(*keys) == old(*keys))


def only(name, key, value):
    """A field changes for one key."""
    x = Const("of " + name, key.sort())
    return ForAll([x], getattr(b, name)(x) == If(x == key, value, getattr(a, name)(x)))


def for_lives(name, who, value):
    """A field changes for the lives for which who holds."""
    return ForAll([h], getattr(b, name)(h) == If(who(h), value(h), getattr(a, name)(h)))


def no_proposals(who):
    return ForAll([h, m], b.pending(h, m) == And(a.pending(h, m), Not(who(h))))


def step(*conditions, changes=""):
    return And(*conditions, *unchanged(*changes.split()))


def take(who):
    """The lives for which who holds take the grant that is in the block after the step: they
    asked in the history that they know, and have its key."""
    return And(
        for_lives("phase", who, lambda x: HOLDING), for_lives("grant", who, lambda x: b.G),
        for_lives("start", who, lambda x: b.S), for_lives("end", who, lambda x: b.E),
        for_lives("ver", who, lambda x: b.V), for_lives("used", who, lambda x: b.S - 1),
        for_lives("alone", who, lambda x: a.own(a.bid(x))))


TAKEN = " phase grant start end ver used alone"


def confirm(who):
    """They learn the block after the step, which a renewal wrote."""
    return And(
        for_lives("end", who, lambda x: b.E), for_lives("ver", who, lambda x: b.V),
        for_lives("alone", who, lambda x: Or(a.alone(x), a.own(b.nonce))), no_proposals(who))


CONFIRMED = " end ver alone pending"

hears = Function("hears", Life, B)  # the lives that get the response: some, one or none
is_k = lambda x: x == k  # noqa: E731


def same_history(of, unless):
    return BoolVal(True) if wrong == unless else of == a.history


def same_version(seen):
    return BoolVal(True) if wrong == "unchecked" else seen == a.V


def same_place(unless):
    return BoolVal(True) if wrong == unless else a.here


def no_earlier(life, end):
    return BoolVal(True) if wrong == "shortened" else a.end(life) <= end


STEPS = {
    # A process asks in the store's history, or in one before.
    "ask": step(
        a.phase(k) == NEW, only("phase", k, ASKING), a.begun(past), only("key", k, past),
        Not(a.asked(n)), Not(a.sent(n)), only("bid", k, n), only("asked", n, True),
        only("forWhom", n, past), only("author", n, k), only("own", n, True),
        only("alone", k, False),
        changes="phase key bid asked forWhom author own alone"),
    "acquire": step(
        same_place("acquire_elsewhere"), a.asked(n),
        same_history(a.forWhom(n), "acquire_unchecked"),
        (a.S if wrong == "last_start" else a.E) <= at, at < until,
        b.S == at, b.E == until, b.V == a.V + 1, b.G == b.V, b.wrote == ACQUIRE, b.nonce == n,
        ForAll([h], Implies(hears(h), And(a.phase(h) == ASKING, a.bid(h) == n))), take(hears),
        changes="S E V G wrote nonce" + TAKEN),
    "acquire again": step(  # the block has its nonce, so nothing is written
        same_place("found_elsewhere"), a.phase(k) == ASKING, a.wrote == ACQUIRE,
        a.nonce == a.bid(k), a.S < a.E, take(is_k),
        changes=TAKEN),
    "propose": step(
        a.phase(k) == HOLDING,
        And(a.sent(n), a.bid(a.author(n)) == a.bid(k), a.seen(n) == a.ver(k),
            a.under(n) == a.key(k), a.ofGrant(n) == a.grant(k)) if wrong == "drawn_early"
        else And(Not(a.asked(n)), Not(a.sent(n))),
        only("sent", n, True), only("author", n, k), only("own", n, True),
        only("seen", n, a.ver(k)), only("under", n, a.key(k)), only("ofGrant", n, a.grant(k)),
        ForAll([h, m], b.pending(h, m) == Or(a.pending(h, m), And(h == k, m == n))),
        changes="sent author own seen under ofGrant pending"),
    "renew": step(
        same_place("renew_elsewhere"), a.sent(n), same_history(a.under(n), "renew_unchecked"),
        same_version(a.seen(n)),
        b.E >= a.E, b.V == a.V + 1, b.wrote == RENEW, b.nonce == n,
        ForAll([h], Implies(hears(h), And(
            a.phase(h) == HOLDING, a.pending(h, n), no_earlier(h, b.E)))),
        confirm(hears), changes="E V wrote nonce" + CONFIRMED),
    "renewal refused": step(
        ForAll([h, m], b.pending(h, m) == And(a.pending(h, m), Not(And(h == k, m == n)))),
        changes="pending"),
    "read": step(  # after a renewal without a response: the block has a nonce that it proposed
        same_place("read_elsewhere"), a.phase(k) == HOLDING, a.wrote == RENEW,
        a.pending(k, a.nonce), no_earlier(k, a.E), confirm(is_k),
        changes=CONFIRMED),
    "use": step(
        a.phase(k) == HOLDING, a.used(k) <= at, a.start(k) <= at,
        at <= a.end(k) if wrong == "inclusive_end" else at < a.end(k), only("used", k, at),
        changes="used"),
    "end": step(
        a.phase(k) == HOLDING, only("phase", k, OVER), no_proposals(is_k),
        changes="phase pending"),
    "copy": step(
        a.phase(copy) == NEW, Or(a.phase(k) == ASKING, a.phase(k) == HOLDING),
        *(only(field, copy, getattr(a, field)(k)) for field in
          "phase key bid grant start end ver used".split()),
        for_lives("alone", lambda x: Or(x == copy, x == k), lambda x: BoolVal(False)),
        ForAll([h, m], b.pending(h, m) == If(h == copy, a.pending(k, m), a.pending(h, m))),
        ForAll([m], b.own(m) == And(a.own(m), a.author(m) != k)),
        changes="phase key bid grant start end ver used alone pending own"),
    # A failover that lost writes, a copy, a backup restored elsewhere: another place. It shows a
    # state of some history: what wrote the block last was a request in that history, or is unknown.
    "moved": step(
        a.begun(b.history), Not(b.here), b.S <= b.E, 0 <= b.G, b.G <= b.V,
        Or(b.wrote == NOTHING, b.wrote == ACQUIRE, b.wrote == RENEW),
        Implies(b.wrote == NOTHING, Or(b.G < b.V, b.V == 0)),
        Implies(b.wrote == ACQUIRE, And(b.G == b.V, b.V >= 1, a.asked(b.nonce),
                                        a.forWhom(b.nonce) == b.history)),
        Implies(b.wrote == RENEW, And(b.G < b.V, a.sent(b.nonce), a.under(b.nonce) == b.history,
                                      a.seen(b.nonce) + 1 == b.V)),
        changes="here history S E V G wrote nonce"),
    # A backup restored in place: the block shows any state of any history.
    "set back": step(
        a.begun(b.history), Or(b.tainted(b.history), wrong == "taint_forgotten"),
        ForAll([past], b.tainted(past) == Or(
            a.tainted(past), And(past == b.history, wrong != "taint_forgotten"))),
        b.S <= b.E, 0 <= b.G, Or(b.G < b.V, And(b.G == 0, b.V == 0)), b.wrote == NOTHING,
        changes="history tainted S E V G wrote nonce"),
    # Anybody begins a history, at any time, from any state.
    "begin": step(
        {"numbered": b.history != a.history,
         "door_open": b.history == a.history}.get(wrong, Not(a.begun(b.history))),
        ForAll([past], b.begun(past) == Or(a.begun(past), past == b.history)),
        b.S <= b.E, 0 <= b.G, Or(b.G < b.V, And(b.G == 0, b.V == 0)), b.wrote == NOTHING, b.here,
        changes="here history begun S E V G wrote nonce"),
}
if wrong == "begin_again":
    STEPS["begin again"] = step(  # completed by another process, or a second time
        a.begun(b.history), b.history != a.history, b.S == 0, b.E == 0, b.G == 0, b.V == 0,
        b.wrote == NOTHING, changes="history S E V G wrote nonce")
if wrong == "key_replaced":
    STEPS["replace key"] = step(
        a.phase(k) == HOLDING, a.begun(past), only("key", k, past), no_proposals(is_k),
        changes="key pending")
if wrong == "end_assumed":
    STEPS["assume"] = step(
        a.phase(k) == HOLDING, at >= a.end(k), only("end", k, at), changes="end")
if wrong == "any_holder":
    STEPS["adopt"] = step(
        a.phase(k) == HOLDING, a.wrote == RENEW, confirm(is_k), changes=CONFIRMED)
if wrong == "start_ignored":
    STEPS["trust"] = step(
        a.phase(k) == HOLDING, a.wrote == ACQUIRE, a.nonce == a.bid(k), only("end", k, a.E),
        only("ver", k, a.V), no_proposals(is_k), changes="end ver pending")

START = And(
    a.here, a.V == 0, a.G == 0, a.S == 0, a.E == 0, a.wrote == NOTHING,
    ForAll([past], And(a.begun(past) == (past == a.history), Not(a.tainted(past)))),
    ForAll([h], a.phase(h) == NEW),
    ForAll([n], And(Not(a.asked(n)), Not(a.sent(n)))),
    ForAll([h, n], Not(a.pending(h, n))))


def check(*facts):
    solver = Solver()
    solver.set("timeout", 60_000)
    solver.add(*facts)
    return solver.check()


began = time.time()
before, after = invariant(a), invariant(b)
broken = [("start", part) for part, fact in before.items() if check(START, Not(fact)) != unsat]
count = len(before) * (1 + len(STEPS))
for name, change in STEPS.items():
    for part, fact in after.items():
        if check(And(*before.values()), change, Not(fact)) != unsat:
            broken.append((name, part))
if not wrong:
    # Otherwise a proof could hold because its steps are impossible.
    for name, change in STEPS.items():
        if check(And(*before.values()), change, a.V > 3, g != k, a.phase(g) == HOLDING,
                 a.key(g) == a.history, a.used(g) > a.start(g)) != sat:
            broken.append((name, "is impossible"))
print(f"{wrong or 'the rule':20} {count} checks in {time.time() - began:.0f} s:",
      "; ".join(f"{name} breaks {part}" for name, part in broken) if broken else "inductive")
sys.exit(bool(broken) != bool(wrong))
