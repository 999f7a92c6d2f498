#!/usr/bin/python3
"""Proves the lease rule without bounds, with z3 (apt-get install python3-z3).

The rule is a set of steps between states of one block: what the store does
(internal/engine/block.go), what a Keeper makes of a response (answer.go), and what goes wrong
around them: messages that are lost, late or repeated, clocks that show any time, processes that
end or are copied, and a store that is set back to anything. An invariant must hold at the start
and, whenever it holds before a step, after it. Each step is checked from every state that
satisfies the invariant, so the number of processes, renewals, copies, messages and times has no
bound.

    rule.py             the rule must be inductive, and each step possible
    rule.py VARIANT     a wrong rule, see VARIANTS: the invariant must fail
    rule.py -list       the names of the variants

A *life* is a generator with its Keeper. A copy of a process is another life. A *grant* is known
by the version with which the store wrote it.
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
    "unchecked": "Renew and Release compare no version",
    "given_back": "used seconds are given back",
    "acquire_unchecked": "Acquire does not compare the history",
    "renew_unchecked": "Renew does not compare the history",
    "release_unchecked": "Release does not compare the history",
    "numbered": "histories are numbered by a counter in the store, which a backup sets back",
    "door_open": "a store is set back to a backup without a new history",
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
NOTHING, ACQUIRE, RENEW, RELEASE = range(4)  # what wrote the block last

FIELDS = {
    # the block
    "history": (History,),  # in the page's header
    "begun": (History, B),  # the histories that were ever begun
    "S": (I,), "E": (I,),  # start and end of the last grant
    "V": (I,), "G": (I,),  # its version, and the version of the last grant
    "wrote": (I,), "nonce": (Nonce,),  # what wrote it last, with which nonce
    # lives
    "phase": (Life, I),
    "secret": (Life, History),  # whose secret it has: it encrypts IDs under this one
    "bid": (Life, Nonce),  # of its Acquire; a copy has the same
    "grant": (Life, I),  # the version with which it was granted
    "start": (Life, I), "end": (Life, I), "ver": (Life, I),  # what it knows of the block
    "used": (Life, I),  # the last second for which it made an ID, or start - 1
    "pending": (Life, Nonce, B),  # proposed since the confirmed state
    # A life is alone if it had a grant before it was ever copied, or has a confirmed write with a
    # nonce that it drew after it was last copied.
    "alone": (Life, B),
    "robbed": (Life, B),  # a copy gave the grant back
    # messages, which may be delivered at any time and any number of times
    "asked": (Nonce, B), "forWhom": (Nonce, History),  # Acquire
    "sent": (Nonce, B), "author": (Nonce, Life), "seen": (Nonce, I), "under": (Nonce, History),
    "ofGrant": (Nonce, I),  # Renew: for which grant, and the version that it compares
    "own": (Nonce, B),  # its author was not copied since
    "gives": (Life, B), "givesSeen": (Life, I), "unused": (Life, I),  # Release
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
    return And(granted(s, x), s.secret(x) == s.history)


def limit(s, x):
    """The first second that x will never use."""
    return If(s.phase(x) == HOLDING, s.end(x), s.used(x) + 1)


def invariant(s):
    last = And(now(s, h), s.grant(h) == s.G)  # h has the last grant, if it has not lost it
    former = And(now(s, h), s.grant(h) < s.G)
    both = And(granted(s, h), granted(s, g), s.secret(h) == s.secret(g), h != g)
    return {
        # The goals. Two lives under one secret with different grants share no second, unless a
        # copy gave the grant away.
        "grants are disjoint": ForAll([h, g], Implies(
            And(both, s.grant(h) < s.grant(g), Not(s.robbed(h))), limit(s, h) <= s.start(g))),
        # Of the copies of a life at most one is alone, so at most one goes on, ...
        "one copy is alone": ForAll([h, g], Implies(
            And(both, s.grant(h) == s.grant(g)), Not(And(s.alone(h), s.alone(g))))),
        # ... and no copy gives away what that one uses.
        "none robs it": ForAll([h], Implies(And(granted(s, h), s.alone(h)), Not(s.robbed(h)))),

        "block": And(s.S <= s.E, 0 <= s.G, s.G <= s.V, s.begun(s.history)),
        "life": ForAll([h], And(
            NEW <= s.phase(h), s.phase(h) <= OVER,
            Implies(s.phase(h) != NEW, And(
                s.begun(s.secret(h)), s.asked(s.bid(h)), s.forWhom(s.bid(h)) == s.secret(h))),
            Implies(granted(s, h), s.start(h) <= s.used(h) + 1),
            Implies(s.phase(h) == HOLDING, And(s.used(h) < s.end(h), s.start(h) < s.end(h))),
            Implies(now(s, h), And(
                1 <= s.grant(h), s.grant(h) <= s.G, s.grant(h) <= s.ver(h), s.ver(h) <= s.V)))),
        "last": ForAll([h], Implies(last, And(
            s.start(h) == s.S, Or(s.robbed(h), limit(s, h) <= s.E)))),
        "former": ForAll([h], Implies(former, And(
            s.ver(h) < s.G, Or(s.robbed(h), limit(s, h) <= s.S)))),
        # A grant goes to the lives with one bid: a life and the copies that it had before.
        "bid": ForAll([h, g], Implies(
            And(both, s.grant(h) == s.grant(g)), s.bid(h) == s.bid(g))),
        "asked": ForAll([n], Implies(s.asked(n), s.begun(s.forWhom(n)))),
        "renewals": ForAll([n], Implies(s.sent(n), And(
            s.begun(s.under(n)),
            Implies(s.under(n) == s.history, And(
                1 <= s.ofGrant(n), s.ofGrant(n) <= s.G, s.ofGrant(n) <= s.seen(n),
                s.seen(n) <= s.V, Implies(s.ofGrant(n) < s.G, s.seen(n) < s.G)))))),
        "releases": ForAll([h], Implies(s.gives(h), And(
            s.phase(h) == OVER, s.used(h) + 1 <= s.unused(h),
            Implies(s.secret(h) == s.history, And(
                s.grant(h) <= s.givesSeen(h), s.givesSeen(h) == s.ver(h)))))),
        "pending": ForAll([h, n], Implies(s.pending(h, n), And(
            s.phase(h) == HOLDING, s.sent(n), s.under(n) == s.secret(h), s.seen(n) == s.ver(h),
            s.ofGrant(n) == s.grant(h), Implies(s.own(n), s.author(n) == h)))),
        "one's own": ForAll([h, n], And(
            Implies(And(s.asked(n), s.own(n), s.bid(h) == n, s.phase(h) != NEW), s.author(n) == h),
            Implies(And(now(s, h), s.ver(h) == s.V, s.wrote == RENEW, s.own(s.nonce)),
                    s.author(s.nonce) == h),
            Implies(And(s.alone(h), s.pending(h, n)), s.own(n)))),
        "alone by what": ForAll([h], Implies(And(now(s, h), s.alone(h)), And(
            Implies(s.ver(h) == s.grant(h), s.own(s.bid(h))),
            Implies(And(s.ver(h) == s.V, s.wrote == RENEW), s.own(s.nonce))))),
        # A life that is alone knows a version that no copy knows or learns.
        "alone": ForAll([h, g], Implies(
            And(both, s.secret(h) == s.history, s.grant(h) == s.grant(g), s.alone(h)),
            s.ver(g) < s.ver(h))),
        "robbed": ForAll([h], Implies(And(now(s, h), s.robbed(h)), And(
            s.ver(h) < s.V, Or(s.wrote != RENEW, s.ver(h) + 1 < s.V)))),
        # What wrote the block last.
        "wrote": And(
            NOTHING <= s.wrote, s.wrote <= RELEASE,
            Implies(s.wrote == ACQUIRE, And(s.G == s.V, s.V >= 1, s.asked(s.nonce),
                                            s.forWhom(s.nonce) == s.history)),
            Implies(s.wrote != ACQUIRE, Or(s.G < s.V, s.V == 0)),
            Implies(s.wrote == RENEW, And(
                s.sent(s.nonce), s.under(s.nonce) == s.history, s.seen(s.nonce) + 1 == s.V,
                s.ofGrant(s.nonce) == s.G))),
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
    """The lives for which who holds take the grant that is in the block after the step."""
    return And(
        for_lives("phase", who, lambda x: HOLDING), for_lives("grant", who, lambda x: b.G),
        for_lives("start", who, lambda x: b.S), for_lives("end", who, lambda x: b.E),
        for_lives("ver", who, lambda x: b.V), for_lives("used", who, lambda x: b.S - 1),
        for_lives("alone", who, lambda x: a.own(a.bid(x))),
        for_lives("robbed", who, lambda x: BoolVal(False)))


TAKEN = " phase grant start end ver used alone robbed"


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


STEPS = {
    # A process starts, with the secret of the store's history or of one before.
    "ask": step(
        a.phase(k) == NEW, only("phase", k, ASKING), a.begun(past), only("secret", k, past),
        Not(a.asked(n)), Not(a.sent(n)), only("bid", k, n), only("asked", n, True),
        only("forWhom", n, past), only("author", n, k), only("own", n, True),
        only("alone", k, False),
        changes="phase secret bid asked forWhom author own alone"),
    "acquire": step(
        a.asked(n), same_history(a.forWhom(n), "acquire_unchecked"),
        (a.S if wrong == "last_start" else a.E) <= at, at < until,
        b.S == at, b.E == until, b.V == a.V + 1, b.G == b.V, b.wrote == ACQUIRE, b.nonce == n,
        ForAll([h], Implies(hears(h), And(a.phase(h) == ASKING, a.bid(h) == n))), take(hears),
        changes="S E V G wrote nonce" + TAKEN),
    "acquire again": step(  # the block has its nonce, so nothing is written
        a.phase(k) == ASKING, a.wrote == ACQUIRE, a.nonce == a.bid(k), a.S < a.E, take(is_k),
        changes=TAKEN),
    "propose": step(
        a.phase(k) == HOLDING,
        And(a.sent(n), a.bid(a.author(n)) == a.bid(k), a.seen(n) == a.ver(k),
            a.under(n) == a.secret(k), a.ofGrant(n) == a.grant(k)) if wrong == "drawn_early"
        else And(Not(a.asked(n)), Not(a.sent(n))),
        only("sent", n, True), only("author", n, k), only("own", n, True),
        only("seen", n, a.ver(k)), only("under", n, a.secret(k)), only("ofGrant", n, a.grant(k)),
        ForAll([h, m], b.pending(h, m) == Or(a.pending(h, m), And(h == k, m == n))),
        changes="sent author own seen under ofGrant pending"),
    "renew": step(
        a.sent(n), same_history(a.under(n), "renew_unchecked"), same_version(a.seen(n)),
        b.E >= a.E, b.V == a.V + 1, b.wrote == RENEW, b.nonce == n,
        ForAll([h], Implies(hears(h), And(a.phase(h) == HOLDING, a.pending(h, n)))),
        confirm(hears), changes="E V wrote nonce" + CONFIRMED),
    "renewal refused": step(
        ForAll([h, m], b.pending(h, m) == And(a.pending(h, m), Not(And(h == k, m == n)))),
        changes="pending"),
    "read": step(  # after a renewal without a response: the block has a nonce that it proposed
        a.phase(k) == HOLDING, a.wrote == RENEW, a.pending(k, a.nonce), confirm(is_k),
        changes=CONFIRMED),
    "use": step(
        a.phase(k) == HOLDING, a.used(k) <= at, a.start(k) <= at,
        at <= a.end(k) if wrong == "inclusive_end" else at < a.end(k), only("used", k, at),
        changes="used"),
    "end": step(
        a.phase(k) == HOLDING, only("phase", k, OVER), no_proposals(is_k),
        changes="phase pending"),
    "give back": step(
        a.phase(k) == HOLDING, only("phase", k, OVER), no_proposals(is_k), only("gives", k, True),
        only("givesSeen", k, a.ver(k)), at >= a.start(k),
        BoolVal(True) if wrong == "given_back" else at > a.used(k), only("unused", k, at),
        changes="phase pending gives givesSeen unused"),
    "release": step(
        a.gives(k), same_history(a.secret(k), "release_unchecked"), same_version(a.givesSeen(k)),
        b.E == If(a.unused(k) < a.S, a.S, If(a.unused(k) < a.E, a.unused(k), a.E)),
        b.V == a.V + 1, b.wrote == RELEASE,
        for_lives("robbed", lambda x: And(x != k, now(a, x), a.grant(x) == a.grant(k)),
                  lambda x: BoolVal(True)),
        changes="E V wrote nonce robbed"),
    "copy": step(
        a.phase(copy) == NEW, Or(a.phase(k) == ASKING, a.phase(k) == HOLDING),
        *(only(field, copy, getattr(a, field)(k)) for field in
          "phase secret bid grant start end ver used robbed".split()),
        for_lives("alone", lambda x: Or(x == copy, x == k), lambda x: BoolVal(False)),
        ForAll([h, m], b.pending(h, m) == If(h == copy, a.pending(k, m), a.pending(h, m))),
        ForAll([m], b.own(m) == And(a.own(m), a.author(m) != k)),
        changes="phase secret bid grant start end ver used robbed alone pending own"),
    # The store is set back to anything, and gets a new secret, before anything else reaches it.
    "new history": step(
        {"numbered": b.history != a.history,
         "door_open": b.history == a.history}.get(wrong, Not(a.begun(b.history))),
        ForAll([past], b.begun(past) == Or(a.begun(past), past == b.history)),
        b.S <= b.E, 0 <= b.G, Or(b.G < b.V, And(b.G == 0, b.V == 0)), b.wrote == NOTHING,
        changes="history begun S E V G wrote nonce"),
}
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
    a.V == 0, a.G == 0, a.S == 0, a.E == 0, a.wrote == NOTHING,
    ForAll([past], a.begun(past) == (past == a.history)),
    ForAll([h], And(a.phase(h) == NEW, Not(a.gives(h)))),
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
                 a.secret(g) == a.history, a.used(g) > a.start(g)) != sat:
            broken.append((name, "is impossible"))
print(f"{wrong or 'the rule':20} {count} checks in {time.time() - began:.0f} s:",
      "; ".join(f"{name} breaks {part}" for name, part in broken) if broken else "inductive")
sys.exit(bool(broken) != bool(wrong))
