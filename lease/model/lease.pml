/*
 * The lease rule: a store, Keepers, and a network between them that loses,
 * delays and duplicates messages. README.md explains the model; ./check runs it.
 *
 * A life is one generator with its Keeper: a process that asks for a block,
 * makes IDs with it and renews it. It may stop after any step, which is a
 * crash, or its end. The last CLONES lives are clones: each begins as a copy
 * of another life, made at any point.
 *
 * Times are whole seconds from 0 to T. No clock is modelled: wherever a time
 * is needed, any time may be chosen.
 */

#ifndef LIVES
#define LIVES 3		/* including clones; at most 4 */
#endif
#ifndef CLONES
#define CLONES 0
#endif
#ifndef RENEWS
#define RENEWS 2	/* attempts per life, at most 3 */
#endif
#ifndef STRANGER_RENEWS
#define STRANGER_RENEWS RENEWS	/* for lives that are not cloned, if others are */
#endif
#ifndef T
#define T 3
#endif
#if !defined(W_MIN) || !defined(W_MAX)
#define W_MIN 0
#define W_MAX (T - 1)
#endif

/* Nonces. EMPTY is the "" that a block has before its first grant. */
#define PER_LIFE	(1 + RENEWS)
#define NONCE(p, k)	(1 + (p) * PER_LIFE + (k))	/* k = 0: of Acquire, 1...: of Renew */
#define LIFE(n)		(((n) - 1) / PER_LIFE)
#define INDEX(n)	(((n) - 1) % PER_LIFE)
#define NONCES		(1 + LIVES * PER_LIFE)
#define EMPTY		0
#define BIT(n)		(1 << (n))

/* Versions are counted back from the store's present one: every write makes
 * the versions in lives and messages one older. The rule does not distinguish
 * versions from two or more writes ago. */
#define PRESENT	2
#define BEFORE	1

/* The store's state of the block that the ledger watches. */
typedef Block {
	unsigned start : 3;	/* start of the last grant */
	unsigned until : 3;	/* the first second never granted */
	unsigned holder : 4
}
Block store;

/* The other blocks need no state. Any of them may be free, or held by any life,
 * whenever Acquire arrives, and a life that gets one no longer affects the
 * watched block. */

/* The phases of a life. */
#define UNBORN	 0
#define ASKING	 1	/* asks for a block */
#define UNPROVEN 2	/* won a grant by a repeated nonce: makes no IDs yet */
#define HOLDING	 3	/* makes IDs */
#define OVER	 4	/* sealed */

/* The state of a life. */
typedef Life {
	unsigned phase : 3;
	unsigned ask : 4;	/* the nonce of Acquire */
	bit again;		/* Acquire was sent before */
	unsigned drawn : 2;	/* nonces drawn for Renew */
	bit unsure;		/* a Renew has not been answered yes */
	unsigned start : 3;	/* the last confirmed grant */
	unsigned end : 3;
	unsigned holder : 4;
	unsigned version : 2;
	unsigned pending : 14;	/* nonces proposed since */
	unsigned lost : 14;	/* pending nonces answered "lost" */
	unsigned waiting : 4;	/* for the response to Renew with this nonce */
	bit past		/* the generator has entered second W, or a later one */
}
Life life[LIVES];

/* The network: sent messages that may still be delivered, any number of times.
 * The time in a message is chosen when it is delivered. */
typedef Message {
	unsigned holder : 4;
	unsigned version : 2	/* 0: no message */
}
Message renewal[NONCES];	/* by nonce */
unsigned asked : LIVES;		/* the lives whose Acquire was sent */

/* The ledger watches one second of one block, chosen at the start: a property
 * of every choice is a property of every second. Sets of lives. */
unsigned W : 3;
unsigned used : LIVES;		/* made IDs of second W */
unsigned usedFresh : LIVES;	/* did so while fresh */

/* State about clones that only the invariant needs. Sets of lives. */
unsigned cloned : LIVES;	/* is a clone, or has one */
unsigned resent : LIVES;	/* sent Acquire again after the clone */
unsigned fresh : LIVES;		/* has a confirmed write begun after the clone */
unsigned passed : LIVES;	/* a clone wrote: the store's next response must stop this life */
unsigned told : 14;		/* nonces for which one clone was told yes and the other was not */
typedef Kinship {
	unsigned family : 2;	/* a life and its clones have one family */
	unsigned mark : 2	/* Renew's nonces up to this one were drawn before the clone */
}
Kinship kin[LIVES];

#define IN(set, p)	((set) & (1 << (p)))
#define ADD(set, p)	set = set | (1 << (p))
#define DROP(set, p)	set = set & ~(1 << (p))
#define KIN(p, q)	((p) != (q) && kin[p].family == kin[q].family)
#define DRAWN_AFTER(n)	(IN(cloned, LIFE(n)) && INDEX(n) > kin[LIFE(n)].mark)
#define RENEWABLE(p)	(life[p].phase == UNPROVEN || life[p].phase == HOLDING)

/* Scratch variables: valid within a step only. */
hidden byte p, e, i, n, q, x, ok;

inline any(t, low, high) {
	t = low;
	do
	:: t < high -> t++
	:: break
	od
}

#if defined(unchecked_bug)
#define MATCHES(m)	(m.version)
#define MESSAGES_LAST
#elif defined(version_unchecked_bug)
#define MATCHES(m)	(m.version && store.holder == m.holder)
#define MESSAGES_LAST
#else
#define MATCHES(m)	(m.version == PRESENT && store.holder == m.holder)
#endif

inline dead(m) {
	m.holder = 0;
	m.version = 0
}

/* ---- The Keeper. ---- */

/* The store's state is confirmed. The start of a life's grant never changes. */
inline confirm(p) {
	d_step {
		life[p].end = store.until;
		life[p].holder = store.holder;
		life[p].version = PRESENT;
		life[p].pending = 0;
		life[p].lost = 0;
		life[p].unsure = false;
		life[p].waiting = 0
	}
}

/* Once a life no longer renews, this state is irrelevant. */
inline forget(p) {
	d_step {
		life[p].ask = 0;
		life[p].again = false;
		life[p].drawn = 0;
		life[p].unsure = false;
		life[p].holder = 0;
		life[p].version = 0;
		life[p].lost = 0;
		life[p].waiting = 0;
		DROP(fresh, p);
		DROP(resent, p)
	}
}

inline seal(p) {
	printf("life %d: seals\n", p);
	forget(p);
	d_step {
		life[p].phase = OVER;
		DROP(passed, p);
		life[p].start = 0;
		life[p].end = 0;
		life[p].pending = 0
	}
}

#ifdef repeated_used_bug
#define REPEATED_IS_UNPROVEN	false
#else
#define REPEATED_IS_UNPROVEN	true
#endif

/* Acquire is answered with a grant. */
inline granted(p) {
	printf("life %d: is granted [%d,%d)\n", p, store.start, store.until);
	confirm(p);
	life[p].start = store.start;
	if
	:: life[p].again && REPEATED_IS_UNPROVEN -> life[p].phase = UNPROVEN
	:: else -> life[p].phase = HOLDING
	fi;
	life[p].again = false;
	life[p].ask = 0;
	if
	:: IN(resent, p) -> ADD(fresh, p); DROP(resent, p)
	:: else
	fi
}

/* Renew with nonce m is answered: yes. */
inline renewed(p, m) {
	printf("life %d: nonce %d is answered yes\n", p, m);
	/* After a clone's swap, the first response must stop this life. */
	assert(!IN(passed, p) && !(told & BIT(m)));
	confirm(p);
	life[p].phase = HOLDING;
	if
	:: DRAWN_AFTER(m) -> ADD(fresh, p)
	:: else
	fi
}

/* Renew with nonce m is answered: lost. */
inline refused(p, m) {
	printf("life %d: nonce %d is answered lost\n", p, m);
	life[p].waiting = 0;
	life[p].lost = life[p].lost | (BIT(m) & life[p].pending);
	if
	:: told & BIT(m) -> ADD(passed, p)
	:: else
	fi
}

inline adopt(p) {
	printf("life %d: adopts the end %d\n", p, store.until);
	if
	:: DRAWN_AFTER(store.holder) -> ADD(fresh, p)
	:: else
	fi;
	confirm(p)
}

/* The cases of a Get. */
#define SAME_HOLDER(p)	(store.holder == life[p].holder)
#define SAME_START(p)	(store.start == life[p].start)
#define SAME_GRANT(p)	(life[p].version == PRESENT && SAME_START(p))
#define PROPOSED(p)	(!SAME_HOLDER(p) && (life[p].pending & BIT(store.holder)) && SAME_START(p))
#define REFUSED(p)	(life[p].lost & BIT(store.holder))
#define ONE_MORE(p)	(life[p].version == BEFORE)

/* Actions that a variant replaces. */
#ifdef start_ignored_bug
#define REGRANTED(p)	confirm(p)
#else
#define REGRANTED(p)	seal(p)
#endif
#ifdef lost_adopted_bug
#define SENT_BY_ANOTHER(p)	adopt(p)
#else
#define SENT_BY_ANOTHER(p)	seal(p)
#endif
#ifdef any_holder_bug
#define ANOTHERS(p)	confirm(p)
#else
#define ANOTHERS(p)	seal(p)
#endif

/* Get is answered after a Renew without a yes: each line is a row of the table. */
inline look(p) {
	printf("life %d: sees holder %d, [%d,%d)\n", p, store.holder, store.start, store.until);
	life[p].waiting = 0;
	if
	:: SAME_HOLDER(p) && SAME_GRANT(p) -> skip /* not written yet */
	:: SAME_HOLDER(p) && !SAME_GRANT(p) -> REGRANTED(p)
	:: PROPOSED(p) && REFUSED(p) -> SENT_BY_ANOTHER(p)
	:: PROPOSED(p) && !REFUSED(p) && ONE_MORE(p) -> adopt(p)
	:: else -> ANOTHERS(p)
	fi;
	/* After a clone's swap, the first response must stop this life. */
	assert(!IN(passed, p))
}

/* ---- The store: the rule of granting. ---- */

#ifdef last_start_bug
#define FREE_FROM	store.start
#else
#define FREE_FROM	store.until
#endif

/* From now on, messages for an earlier version are refused and have no other
 * effect. So the nonces in such messages will never be holders, and it no longer
 * matters that they were proposed. */
#ifdef MESSAGES_LAST
#define AGE(m)		skip
#define UNREFUSED(set, nonce)	skip
#else
#define AGE(m)		if :: m.version -> dead(m) :: else fi
#define UNREFUSED(set, nonce)	set = set & BIT(nonce)
#endif

/* The block gets a new state. */
inline write(nonce) {
	d_step {
		store.holder = nonce;
		i = 0;
		do
		:: i < NONCES -> AGE(renewal[i]); i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < LIVES ->
			if
			:: RENEWABLE(i) ->
				if
				:: life[i].version -> life[i].version--
				:: else
				fi;
				UNREFUSED(life[i].pending, nonce);
				UNREFUSED(life[i].lost, nonce);
				if
				:: life[i].waiting != nonce -> life[i].waiting = 0
				:: else
				fi
			:: else
			fi;
			i++
		:: else -> break
		od;
		told = told & BIT(nonce);
		i = 0
	}
}

/* Acquire arrives, with the nonce that life p drew. */
inline storeAcquire(p) {
	if
	:: store.holder == NONCE(p, 0) -> ok = true /* unchanged */
	:: store.holder != NONCE(p, 0) && FREE_FROM < T ->
		any(e, FREE_FROM, T - 1);
		store.start = e;
		any(e, store.start + 1, T);
		store.until = e;
		write(NONCE(p, 0));
		printf("store: Acquire with nonce %d grants [%d,%d)\n", NONCE(p, 0), store.start, store.until);
		ok = true
	:: store.holder != NONCE(p, 0) -> ok = false /* another block is granted */
	fi;
	x = 0;
	do
	:: x < LIVES ->
		if
		:: life[x].phase == ASKING && life[x].ask == NONCE(p, 0) && ok -> granted(x)
		:: life[x].phase == ASKING && life[x].ask == NONCE(p, 0) && !ok -> seal(x)
		:: true /* no response */
		fi;
		x++
	:: else -> break
	od
}

/* A clone of life p has written after the clone. */
inline pass(p) {
	d_step {
		i = 0;
		do
		:: i < LIVES ->
			if
			:: KIN(p, i) && RENEWABLE(i) -> ADD(passed, i)
			:: else
			fi;
			i++
		:: else -> break
		od;
		i = 0
	}
}

inline swapped(m) {
	write(m);
	printf("store: Renew with nonce %d changes the grant to [%d,%d)\n", m, store.start, store.until);
	if
	:: DRAWN_AFTER(m) -> pass(LIFE(m))
	:: else
	fi
}

/* Renew arrives, with nonce m. */
inline storeRenew(m) {
	ok = false;
	if
	:: MATCHES(renewal[m]) ->
		any(e, store.until, T); /* an earlier end does not shorten the grant */
#ifdef nothing_written_bug
		if
		:: e == store.until
		:: else -> store.until = e; swapped(m)
		fi;
#else
		store.until = e;
		swapped(m);
#endif
		ok = true
#ifdef idempotent_bug
	:: store.holder == m -> ok = true
#endif
	:: else
	fi;
	q = 0; /* lives that get the response */
	n = 0; /* lives that do not */
	x = 0;
	do
	:: x < LIVES ->
		if
		:: life[x].waiting == m && ok -> q++; renewed(x, m)
		:: life[x].waiting == m && !ok -> refused(x, m)
		:: life[x].waiting == m -> n++
		:: life[x].waiting != m
		fi;
		x++
	:: else -> break
	od;
	if
	:: ok && n && q -> told = told | BIT(m)
	:: else
	fi
}

/* ---- The invariant. ---- */

#ifdef inclusive_end_bug
#define WITHIN(t, p)	(life[p].start <= t && t <= life[p].end)
#else
#define WITHIN(t, p)	(life[p].start <= t && t < life[p].end)
#endif

/* Life p makes IDs of second W. */
inline use(p) {
	printf("life %d: makes IDs of second %d\n", p, W);
	d_step {
		i = 0;
		do
		:: i < LIVES ->
			if
			:: IN(used, i) && KIN(p, i) ->
				/* Clones share no second once each has a confirmed
				 * write that began after the clone. */
				assert(!(IN(fresh, p) && IN(usedFresh, i)))
			/* Strangers share no second. */
			:: IN(used, i) && i != p && !KIN(p, i) -> assert(false)
			:: else
			fi;
			i++
		:: else -> break
		od;
		i = 0;
		ADD(used, p);
		if
		:: IN(fresh, p) -> ADD(usedFresh, p)
		:: else
		fi;
		life[p].past = true
	}
}

/* ---- Clones. ---- */

inline copy(p, from) {
	d_step {
		life[p].phase = life[from].phase;
		life[p].ask = life[from].ask;
		life[p].again = life[from].again;
		life[p].unsure = life[from].unsure;
		life[p].start = life[from].start;
		life[p].end = life[from].end;
		life[p].holder = life[from].holder;
		life[p].version = life[from].version;
		life[p].pending = life[from].pending;
		life[p].lost = life[from].lost;
		life[p].waiting = life[from].waiting
	}
}

/* Life p begins as a copy of another. */
inline clone(p) {
	if /* lives are interchangeable: copy the first, or a clone of it */
	:: q = 0
	:: p > LIVES - CLONES -> q = p - 1
	fi;
	if
	:: ASKING <= life[q].phase && life[q].phase <= HOLDING ->
		printf("life %d: is a clone of life %d\n", p, q);
		copy(p, q);
		d_step {
			life[p].past = life[q].past;
			kin[p].family = kin[q].family;
			kin[q].mark = life[q].drawn;
			ADD(cloned, p);
			ADD(cloned, q);
			if
			:: IN(passed, q) -> ADD(passed, p)
			:: else
			fi;
			DROP(fresh, q);
			DROP(usedFresh, q);
			DROP(resent, q)
		}
	:: else
	fi
}

/* A life continues the grant of a crashed one. */
inline resume(p) {
	if
	:: p && RENEWABLE(p - 1) ->
		printf("life %d: resumes life %d\n", p, p - 1);
		copy(p, p - 1);
		life[p].waiting = 0;
		seal(p - 1)
	:: else
	fi
}

/* ---- The schedule: any step, at any time. ---- */

#define me	life[p]
#define ATTEMPTS(p)	(CLONES && p && p < LIVES - CLONES -> STRANGER_RENEWS : RENEWS)

/* The message will be refused; see write. */
inline refusedAlready() {
#ifndef MESSAGES_LAST
	dead(renewal[n]);
	me.pending = me.pending & ~BIT(n);
	me.waiting = 0
#else
	skip
#endif
}

inline keeper() {
	if
	/* Lives that are not clones are interchangeable, so they begin in order. */
	:: me.phase == UNBORN && p < LIVES - CLONES && (p == 0 || CLONES || life[p - 1].phase) ->
		me.phase = ASKING;
		me.ask = NONCE(p, 0);
		ADD(asked, p);
		printf("life %d: asks with nonce %d\n", p, me.ask)
	:: me.phase == ASKING && (!me.again || IN(cloned, p) && !IN(resent, p)) ->
		me.again = true;
		if
		:: IN(cloned, p) -> ADD(resent, p)
		:: else
		fi;
		printf("life %d: asks again with nonce %d\n", p, me.ask)
	:: RENEWABLE(p) && me.drawn < ATTEMPTS(p) ->
		me.drawn++;
		me.unsure = true;
		n = NONCE(p, me.drawn);
		printf("life %d: renews holder %d with nonce %d\n", p, me.holder, n);
		me.pending = me.pending | BIT(n);
		me.waiting = n;
		renewal[n].holder = me.holder;
		renewal[n].version = me.version;
		if
		:: !MATCHES(renewal[n]) -> refusedAlready()
		:: else
		fi
	:: RENEWABLE(p) && me.unsure -> look(p)
	:: me.phase == HOLDING && WITHIN(W, p) -> use(p)
#if CLONES
	:: me.phase == UNBORN && p >= LIVES - CLONES -> clone(p)
#endif
#ifdef end_assumed_bug
	:: me.waiting ->
		me.waiting = 0;
		any(e, me.end, T);
		me.end = e;
		printf("life %d: assumes the end %d\n", p, me.end)
#endif
#ifdef resumed_bug
	:: me.phase == UNBORN -> resume(p)
#endif
	:: else
	fi
}

#define WAITS(x, m)	(x < LIVES && life[x].waiting == m)
#if LIVES == 2
#define AWAITED(m)	(WAITS(0, m) || WAITS(1, m))
#elif LIVES == 3
#define AWAITED(m)	(WAITS(0, m) || WAITS(1, m) || WAITS(2, m))
#else
#define AWAITED(m)	(WAITS(0, m) || WAITS(1, m) || WAITS(2, m) || WAITS(3, m))
#endif
#define IN_FLIGHT(m)	(renewal[m].version || AWAITED(m))

/* Delivers messages of life p, in any order, any number of times. */
inline network() {
	if
	:: IN(asked, p) -> storeAcquire(p)
	:: IN_FLIGHT(NONCE(p, 1)) -> storeRenew(NONCE(p, 1))
#if RENEWS > 1
	:: IN_FLIGHT(NONCE(p, 2)) -> storeRenew(NONCE(p, 2))
#endif
#if RENEWS > 2
	:: IN_FLIGHT(NONCE(p, 3)) -> storeRenew(NONCE(p, 3))
#endif
	:: else
	fi
}

init {
	atomic {
		any(W, W_MIN, W_MAX);
		p = 0;
		do
		:: p < LIVES -> kin[p].family = p; p++
		:: else -> break
		od
	}
end:	do
	:: atomic { any(p, 0, LIVES - 1); keeper() }
	:: atomic { any(p, 0, LIVES - 1); network() }
	od
}
