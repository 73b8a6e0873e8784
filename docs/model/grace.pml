/*
 * Grace periods that several goroutines want at once: who joins which, who
 * drives, who sleeps and is woken.
 *
 * README.md says what is modelled, with which bounds, and what it leaves out.
 * The bounds are macros (spin -DNAME=value). A MUT_ macro breaks one rule of
 * the engine: spin must then find a reader that uses a freed object, or a
 * goroutine that sleeps for ever.
 */
#ifndef R
#define R 2	/* readers, 1 or 2 */
#endif
#ifndef S
#define S 1	/* sections of each reader */
#endif
#ifndef N
#define N 2	/* goroutines that unpublish an object each: P0, P1 and P2 say by what they wait */
#endif
#ifndef P0
#define P0 Synchronize
#endif
#ifndef P1
#define P1 Synchronize
#endif
#ifndef P2
#define P2 Synchronize
#endif
#define Synchronize(w)	Waiter(w, 0, false)
#define Expedited(w)	Waiter(w, 1, false)
#define Impatient(w)	Waiter(w, 0, true)	/* its context can end at any time */
#define WORKER N	/* the worker, among those who sleep */

#define bit(i) (1 << (i))

byte number = 1;	/* newest grace period begun */
byte done = 1;		/* newest grace period ended */
bool mu;		/* gp.mu is held */
byte left;		/* gp.left, Readers that have not passed */
bool held[2];		/* role */
byte joined, woken;	/* moved: those who have its present channel; those whose channel was closed */

byte seen[R];		/* what each Reader shows */
bool ptr[N];		/* object w is no longer published */
bool freed[N];		/* and is freed */

mtype = { IDLE, RUNNING, DRAINING };
mtype state = IDLE;	/* of the worker */
byte want;		/* the newest grace period that StartPoll asked for */
byte queued;		/* objects whose callbacks are queued */

byte target[N];		/* the grace period that w waits for, and, for LIVE, */
byte back;		/* who has returned */

/* broadcast: a waiter joins, then looks once more; a waker changes something, then wakes. */
inline join(w) { d_step { joined = joined | bit(w); woken = woken & ~bit(w) } }
inline leave(w) { joined = joined & ~bit(w); woken = woken & ~bit(w) }
inline wake() { d_step { woken = woken | joined; joined = 0 } }

/* A Reader whose stores are seen at once: reader.pml is about others. */
proctype Reader(byte r)
{
	byte s;	/* sections begun */
	byte m;	/* number copied and not yet shown */
	byte w;	/* the section uses object w */
	bool o;	/* which was no longer published when the section looked: it uses another then */

	do
	:: s < S ->
		d_step { m = number; s++ }
		d_step { seen[r] = m; m = 0 }
		if
		:: d_step { o = ptr[0]; w = 0; assert(o >= freed[0]) }
		:: d_step { o = ptr[1]; w = 1; assert(o >= freed[1]) }
#if N > 2
		:: d_step { o = ptr[2]; w = 2; assert(o >= freed[2]) }
#endif
		fi;
#ifdef LIVE
		if :: skip :: skip -> false fi;	/* or the section does not end */
#endif
		d_step { assert(o >= freed[w]); seen[r] = 0; w = 0; o = false }
	:: else -> break
	od
}

inline lock() {
#ifdef MUT_NOMUTEX
	skip
#else
	d_step { !mu -> mu = true }
#endif
}
#define passes(r) (seen[r] == 0 || seen[r] >= number)
inline look(r) { d_step { if :: (left & bit(r)) && passes(r) -> left = left & ~bit(r) :: else fi } }

/* advance: ok says whether grace period t has ended. Nothing else changes number and done. */
inline advance(t)
{
	lock();
	do
	:: d_step { done >= t -> ok = true; mu = false } break
	:: done < t ->
		if
		:: number == done ->	/* beginLocked, whose look is the one that follows */
			d_step { number++; left = bit(R) - 1 }
		:: number != done
		fi;
		look(0);
#if R > 1
		look(1);
#endif
		if
		:: left == 0 -> done = number;	/* endLocked */
#ifndef MUT_SILENT	/* the end of a grace period wakes nobody */
		   wake()
#endif
		:: d_step { left != 0 -> ok = false; mu = false } break
		fi
	od
}

inline release(r)
{
#ifdef MUT_EARLYWAKE	/* a driver wakes the others before it gives up the role */
	wake();
	held[r] = false
#else
	held[r] = false;
#ifndef MUT_NOWAKE	/* a driver gives up the role and wakes nobody */
	wake()
#endif
#endif
}

/* wait, and drive: ok says whether grace period t has ended; else the context has. */
inline wait(w, r, t, ctx)
{
	do
	:: done >= t -> ok = true; break
	:: done < t ->
#ifdef MUT_LATEJOIN	/* a waiter looks first, then takes the channel */
		if
		:: d_step { !held[r] -> held[r] = true }
		   goto driving
		:: held[r]
		fi;
		join(w);
#else
		if
		:: d_step { !held[r] -> held[r] = true }	/* tryAcquire */
		   goto driving
		:: held[r]
		fi;
		join(w);
		if
		:: done >= t -> goto again
		:: done < t
		fi;
#ifndef MUT_NOLOOK	/* a waiter does not look whether somebody drives */
		if
		:: !held[r] -> goto again
		:: held[r]
		fi;
#endif
#endif
		if	/* asleep */
		:: woken & bit(w)
		:: ctx -> ok = false; break
		fi;
again:		skip
	od;
	goto waited;
driving:
	do
	:: advance(t);
	   if
	   :: ok -> break
	   :: !ok && ctx -> break
	   :: !ok	/* pause */
	   fi
	od;
	release(r);
waited:	skip
}

inline arrive(t)
{
#ifdef MUT_JOIN	/* an arrival joins the grace period that has begun */
	d_step { t = (number > done -> number : number + 1) }
#else
	t = number + 1
#endif
}

/* Synchronize; or Cookie, and later Wait. Unpublish, wait, free. */
proctype Waiter(byte w; bit r; bool ctx)
{
	bool ok;

	ptr[w] = true;
	arrive(target[w]);
	wait(w, r, target[w], ctx);
	d_step {
		leave(w);
		if :: ok -> freed[w] = true :: else fi;
		back = back | bit(w)
	}
}

/* Cookie, and Poll until it says that the grace period has ended, if it ever does. */
proctype Cookie(byte w)
{
	ptr[w] = true;
	arrive(target[w]);
end:	d_step { done >= target[w] -> freed[w] = true; back = back | bit(w) }
}

inline rouse()
{
	do
	:: state == RUNNING -> break
	:: d_step { state == DRAINING -> state = RUNNING } break
	:: d_step { state == IDLE -> state = RUNNING } run Worker(); break
	od;
	skip
}

/* StartPoll, and Poll until it says that the grace period has ended. */
proctype StartPoll(byte w)
{
	ptr[w] = true;
	arrive(target[w]);
#ifdef MUT_ROUSEFIRST	/* the worker is roused before it can see the wish */
	rouse();
#endif
#ifdef MUT_OVERWRITE	/* the wish is stored, whatever was there when that happens */
	if :: want >= target[w] :: want < target[w] -> want = target[w] fi;
#else
	if :: want >= target[w] :: d_step { want < target[w] -> want = target[w] } fi;
#endif
#ifndef MUT_ROUSEFIRST
	rouse();
#endif
	d_step { done >= target[w] -> freed[w] = true; back = back | bit(w) }
}

/* Call, and a callback that frees. */
proctype Call(byte w)
{
	ptr[w] = true;
	d_step { queued = queued | bit(w) }
	rouse();
	d_step { freed[w] -> back = back | bit(w) }
}

/* The worker, with one pass at a time. */
proctype Worker()
{
	byte t, batch;
	bool ok, none;

	do
	:: d_step { batch = queued; queued = 0; none = !batch }	/* beginPass */
	   if
	   :: batch -> arrive(t)
	   :: else -> t = want
	   fi;
	   wait(WORKER, 0, t, false);
	   d_step { leave(WORKER); t = 0; ok = false }
	   do	/* runBatch */
	   :: batch & 1 -> freed[0] = true; batch = batch & ~1
	   :: batch & 2 -> freed[1] = true; batch = batch & ~2
#if N > 2
	   :: batch & 4 -> freed[2] = true; batch = batch & ~4
#endif
	   :: batch ->	/* lookAfter */
		t = want;
		if
		:: done < t ->
			if
			:: d_step { !held[0] -> held[0] = true }
			   advance(t);
			   release(0)
			:: held[0]
			fi
		:: done >= t
		fi;
		d_step { t = 0; ok = false }
	   :: !batch -> break
	   od;
	   wake();
	   if
	   :: !none
	   :: none -> state = DRAINING;	/* drain */
#ifndef MUT_LOSTWISH	/* the worker leaves without a last look */
		if
		:: queued -> state = RUNNING; goto on
		:: !queued
		fi;
		t = want;
		if
		:: t > done -> d_step { state = RUNNING; t = 0 } goto on
		:: t <= done -> t = 0
		fi;
#endif
		if
		:: d_step { state == DRAINING -> state = IDLE } wake(); break
		:: state != DRAINING
		fi
	   fi;
on:	   skip
	od
}

init {
	atomic {
		run Reader(0);
#if R > 1
		run Reader(1);
#endif
		run P0(0);
		run P1(1);
#if N > 2
		run P2(2);
#endif
	}
}

#ifdef LIVE	/* who waits for a grace period that has ended goes on, also if the next one never ends */
#define ended(w) (target[w] && done >= target[w])
ltl live { [] ((ended(0) -> <> (back & 1)) && (ended(1) -> <> (back & 2))) }
#endif
