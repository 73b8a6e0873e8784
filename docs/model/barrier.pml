/*
 * Callbacks, the worker that runs them, Barrier, and Close.
 *
 * README.md says what is modelled, with which bounds, and what it leaves out.
 * The bounds are macros (spin -DNAME=value). A MUT_ macro breaks one rule of
 * the engine: spin must then find a Barrier that returns before a callback has
 * run, a callback that Close leaves behind or that does not run once, or a
 * goroutine that sleeps for ever.
 */
#ifndef C
#define C 2	/* calls of Call, by a goroutine each, 1 to 3 */
#endif
#ifndef B
#define B 1	/* Barriers, 0 to 2 */
#endif
#ifndef X
#define X 1	/* Closes, 0 to 2 */
#endif
#ifndef W
#define W 0	/* StartPolls, 0 or 1 */
#endif
#ifndef F
#define F 0	/* with LAZY: waits that flush, 0 or 1 */
#endif
#ifndef SHARDS
#define SHARDS 2	/* queues, 1 or 2 */
#endif

#define bit(i) (1 << (i))

mtype = { IDLE, RUNNING, DRAINING, CLOSED };
mtype state = IDLE;	/* of the worker */
byte top[SHARDS];	/* the youngest callback that is queued there, 0 if there is none */
byte next[C+1];		/* the callback below it */
byte begun, finished;	/* passes */
byte joined, woken;	/* moved: those who have its present channel; those whose channel was closed */
bool channel;		/* moved: there is a channel */

/* The passes, waiting and running. */
byte wnumber, rnumber;	/* number; 0 if there is no pass */
byte wbatch, rbatch;	/* batch */
bool wempty, rempty;	/* size is 0 */
byte wtarget;		/* target */

byte queued[C+1];	/* of each Head: odd while it is */

byte want;		/* the newest grace period that StartPoll asked for */
byte done = 1;		/* the newest grace period ended */

bool hasty;		/* somebody does not want to wait for a lazy batch */
bool fjoined, fwoken;	/* flushed: the lazy worker has its channel; the channel was closed */

/* What should be, in bits. Call h is bit(h), and bit(C+1) a call with a Head that was used before. */
byte call[C+1];		/* which one has the Head */
byte accepted;		/* Call has returned nil */
byte refused;		/* Call has returned ErrClosed */
byte ran;		/* the callback has returned */
hidden byte early, behind, h, n;
#define once(h) assert(!(ran & call[h]) && !(refused & call[h]) && state != CLOSED)

/* broadcast: a waiter joins, then looks once more; a waker changes something, then wakes. */
inline join(w) { d_step { channel = true; joined = joined | bit(w); woken = woken & ~bit(w) } }
inline leave(w) { joined = joined & ~bit(w); woken = woken & ~bit(w) }
inline wake() { d_step { channel = false; woken = woken | joined; joined = 0 } }

#ifdef LAZY
inline wakeflushed() { d_step { if :: fjoined -> fwoken = true; fjoined = false :: else fi } }
#else
inline wakeflushed() { skip }
#endif

inline rouse(closed)
{
	do
	:: state == RUNNING -> break
	:: d_step { state == DRAINING -> state = RUNNING } break
	:: d_step { state == IDLE -> state = RUNNING } run Worker(); break
	:: state == CLOSED -> closed = true; break
	od;
	skip
}

inline anyQueued(any)
{
	if
	:: top[0] -> any = true
#if SHARDS > 1
	:: !top[0] -> any = (top[1] != 0)
#else
	:: !top[0] -> any = false
#endif
	fi
}

/* Push c: a load and a CompareAndSwap, until it succeeds. */
inline push(c, s) { d_step { next[c] = top[s]; top[s] = c } }

/* CallHead with Head c. */
proctype Call(byte c; byte id)
{
	bit s;	/* the shard, by the CPU */
	byte q;	/* what queued became */
	bool closed;

end:	id == bit(c) || queued[c] == 2;	/* the Head may be used again when the callback has begun to run */
	if
	:: d_step { s = 0; queued[c]++; q = queued[c]; call[c] = id }
#if SHARDS > 1
	:: d_step { s = 1; queued[c]++; q = queued[c]; call[c] = id }
#endif
	fi;
	push(c, s);
	if
	:: state == RUNNING
	:: state != RUNNING -> rouse(closed)
	fi;
	if
	:: d_step { !closed -> accepted = accepted | id; s = 0; q = 0 }
	:: closed ->
#ifndef MUT_LIE	/* who finds d closed does not look whether the callback has run */
		if
#ifdef MUT_VERDICT	/* or takes another call's callback for its own */
		:: d_step { !(queued[c] & 1) -> accepted = accepted | id; s = 0; q = 0; closed = false }
		:: d_step { queued[c] & 1 -> queued[c]++;
#else
		:: d_step { queued[c] != q -> accepted = accepted | id; s = 0; q = 0; closed = false }
		:: d_step { queued[c] == q -> queued[c]++;
#endif
#else
		if
		:: d_step { true ->
#endif
			assert(!(ran & id));	/* or it ran and was refused */
			refused = refused | id; s = 0; q = 0; closed = false }
		fi
	fi
}

/* StartPoll, and Poll until its grace period has ended. */
proctype StartPoll()
{
	byte t;
	bool closed;

	t = done + 1;	/* as long as nobody else drives grace periods */
	if :: want >= t :: d_step { want < t -> want = t } fi;
	rouse(closed);
	if
	:: closed
	:: d_step { !closed && done >= t -> t = 0 }
	fi
}

#ifdef LAZY
/* linger, where no batch is old enough unless it was at once */
inline linger()
{
	do
	:: d_step { fjoined = true; fwoken = false }
	   if :: want > done -> break :: want <= done fi;
	   anyQueued(any);
	   if :: d_step { !any -> skip } break :: any fi;
	   if :: hasty -> break :: !hasty fi;
#ifndef MUT_DEAF	/* a lazy worker does not look whether somebody waits */
	   if :: channel -> break :: !channel fi;
#endif
	   if
	   :: break	/* old enough */
	   :: skip
	   fi;
endlazy:   fwoken
	od;
	skip;
	d_step { fjoined = false; fwoken = false; any = false }
}
#endif

/* Empty shard s into the waiting pass. The stack has the youngest on top, the batch the oldest. */
inline take(s)
{
	if
	:: !top[s]
	:: d_step { top[s] ->
		h = top[s];
		top[s] = 0;
		wempty = false;
		do
		:: h -> n = next[h]; next[h] = wbatch; wbatch = h; h = n
		:: else -> break
		od;
		skip }
	fi
}

inline beginPass()
{
#ifdef LAZY
#ifndef MUT_LATEHASTY
	hasty = false;
#endif
#endif
#ifdef MUT_LATENUMBER	/* a pass is counted after it has taken what was queued */
	wempty = true;
#else
	d_step { begun++; wnumber = begun; wempty = true }
#endif
	take(0);
#if SHARDS > 1
	take(1);
#endif
#ifdef MUT_LATENUMBER
	d_step { begun++; wnumber = begun };
#endif
#ifdef LAZY
#ifdef MUT_LATEHASTY	/* the wish for haste is cleared after the queues */
	hasty = false;
#endif
#endif
#if W > 0
	if
	:: d_step { wempty -> wtarget = want }
	:: d_step { !wempty -> wtarget = done + 1 }
	fi
#else
	skip
#endif
}

proctype Worker()
{
	byte cb, id;	/* the callback that runs, and the call that queued it */
	bool any, none;

pass:	if
	:: rnumber
	:: !rnumber ->
		if
		:: wnumber
		:: !wnumber ->
#ifdef LAZY
			linger();
#endif
			beginPass()
		fi;
#if W > 0
		if	/* wait */
		:: done >= wtarget
		:: done < wtarget -> done = wtarget
		fi;
#else
		skip;	/* wait */
#endif
		d_step {
			rnumber = wnumber; rbatch = wbatch; rempty = wempty;
			wnumber = 0; wbatch = 0; wempty = false; wtarget = 0
		}
	fi;
	do	/* runBatch */
	:: rbatch ->
		d_step {
			cb = rbatch;
			rbatch = next[cb];
			next[cb] = 0;
			once(cb);
			queued[cb]++;
			id = call[cb]
		}
#ifdef AGAIN	/* callback 1 queues its Head again, the first time */
		if
		:: id != bit(1)
		:: id == bit(1) ->
			d_step { ran = ran | bit(1); queued[1]++; call[1] = bit(C+1); cb = 0; id = 0 }
			push(1, 0);
			d_step { state == RUNNING -> accepted = accepted | bit(C+1) }
		fi;
#endif
		d_step { ran = ran | id; cb = 0; id = 0 }
		if
		:: skip
		:: goto pass	/* Goexit: another goroutine goes on */
		:: rbatch && !wnumber ->	/* lookAfter */
			anyQueued(any);
			if
			:: any -> any = false; beginPass()
			:: !any
			fi
		fi
	:: !rbatch -> break
	od;
#ifdef MUT_EARLYFINISH	/* the end of a pass counts as that of the next one too */
	finished = begun;
#else
	finished = rnumber;
#endif
	d_step {
#ifdef MUT_ONELEAVE	/* the worker may leave after a pass that ran something */
		none = (wnumber == 0);
#else
		none = (rempty && wnumber == 0);
#endif
		rnumber = 0; rempty = false
	}
	wake();
	if
	:: !none -> goto pass
	:: none -> none = false
	fi;
	state = DRAINING;	/* drain */
#ifndef MUT_LOSTWISH	/* the worker leaves without a last look */
	anyQueued(any);
	if
	:: any -> any = false; state = RUNNING; goto pass
	:: !any
	fi;
#if W > 0
	if
	:: want > done -> state = RUNNING; goto pass
	:: want <= done
	fi;
#endif
#endif
#ifdef MUT_FORCE	/* the worker leaves also if somebody has gone back to running */
	state = IDLE;
#else
	if
	:: d_step { state == DRAINING -> state = IDLE }
	:: state != DRAINING -> goto pass
	fi;
#endif
#ifndef MUT_STEALTH	/* the worker leaves and wakes nobody */
	wake()
#endif
}

proctype Barrier(byte w)
{
	byte before;	/* the callbacks that were queued before the call */
	byte target, x;
	bool any;

	if	/* mayWait */
	:: d_step { state != CLOSED -> before = accepted }
	:: state == CLOSED -> goto out	/* ErrClosed */
	fi;
	target = begun;
	do
	:: anyQueued(any);
#ifdef MUT_STALE	/* what began before the look counts, whatever began since */
	   x = target;
#else
	   x = begun;
#endif
	   if
#ifdef MUT_ONEPASS	/* Barrier does not mind that a pass began while it looked */
	   :: target = x; goto known
#else
	   :: x == target -> goto known
	   :: x != target -> target = x
#endif
	   fi
	od;
known:	skip;
	d_step { target = target + any; any = false; x = 0 }
	do
	:: finished >= target -> break
	:: finished < target ->
#ifndef MUT_LATEJOIN
		join(w);
#endif
		wakeflushed();
#ifndef MUT_LOSTCLOSE	/* Barrier waits for a pass after Close */
		if :: state == CLOSED -> break :: state != CLOSED fi;
#endif
		if :: finished >= target -> break :: finished < target fi;
#ifdef MUT_LATEJOIN	/* Barrier looks first, then takes the channel */
		join(w);
#endif
		woken & bit(w)
	od;
	skip;
	d_step {
		early = before & ~ran;
		assert(early == 0);
		leave(w); before = 0; target = 0
	}
out:	skip
}

proctype Close(byte w)
{
	if	/* mayWait */
	:: state == CLOSED -> goto out
	:: state != CLOSED
	fi;
	do
	:: d_step { state == IDLE ->
		state = CLOSED;
		behind = accepted & ~ran;
		assert(behind == 0 && !wnumber && !rnumber) }
	   break
	:: state != IDLE ->
		join(w);
		wakeflushed();
		if
		:: state == IDLE -> goto retry
		:: state == CLOSED -> goto out
		:: state == RUNNING || state == DRAINING
		fi;
		woken & bit(w);
retry:		skip
	od;
#ifndef MUT_SILENTCLOSE	/* Close wakes nobody */
	wake();
#endif
out:	leave(w)
}

#if F > 0
/* Synchronize, as far as it sends off what a lazy worker keeps; and what was queued before it is run. */
proctype Flush()
{
	byte before;
	bool any;

	before = accepted;
#ifndef MUT_NOFLUSH
	anyQueued(any);
	if
	:: any -> hasty = true; wakeflushed()
	:: !any
	fi;
#endif
	d_step { !(before & ~ran) -> before = 0; any = false }
}
#endif

init {
	atomic {
		run Call(1, bit(1));
#if C > 1
		run Call(2, bit(2));
#endif
#if C > 2
		run Call(3, bit(3));
#endif
#ifdef REUSE
		run Call(1, bit(C+1));
#endif
#if B > 0
		run Barrier(0);
#endif
#if B > 1
		run Barrier(1);
#endif
#if X > 0
		run Close(2);
#endif
#if X > 1
		run Close(3);
#endif
#if W > 0
		run StartPoll();
#endif
#if F > 0
		run Flush();
#endif
	}
}
