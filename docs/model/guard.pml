/*
 * The Guard protocol of package rcu: two phases of per-CPU lock and unlock
 * counters, one membarrier per grace period.
 *
 * README.md says what is modelled, with which bounds, and what it leaves out.
 * The bounds are macros (spin -DNAME=value). A MUT_ macro breaks one rule of
 * the protocol: spin must then find a reader that uses a freed object.
 */
#define R 2	/* readers */
#ifndef S
#define S 2	/* sections of each reader */
#endif
#ifndef U
#define U 1	/* updaters, 1 or 2, each with a pointer of its own */
#endif
#ifndef K
#define K 1	/* objects that each updater replaces and frees */
#endif
#ifndef GPS
#define GPS 3	/* grace periods */
#endif
#define DEPTH (2*S)	/* a store buffer holds all that one reader can store */

#define UNLOCK 0
#define LOCK 1

byte number = 1;	/* newest grace period begun */
byte done = 1;		/* newest grace period ended */
bit phase;		/* the phase that new sections count in */
byte ptr[U];		/* the object that updater u published last */
byte freed[U];		/* the objects of updater u below freed[u] are freed */

/*
 * A phase has four counters: unlocks on CPU 0, on CPU 1, locks on CPU 0, on CPU 1.
 * They are not kept one by one: nobody but a poll loads them, and it adds them up.
 * So the model has the locks less the unlocks in memory and, for the poll under way,
 * what it will find if no more stores come to words that it has still to load.
 */
short open[2];
short found;
byte loaded = 4;	/* words that the poll under way has loaded, in the above order */
bit polled;		/* the phase that it polls */

/*
 * The store buffers, one for the thread of each reader: lock or unlock counter,
 * phase, CPU. A counter is written by its own CPU only, which sees what it has
 * stored, so each store adds one.
 */
chan sb[R] = [DEPTH] of { bit, bit, bit };
bit cpu[R];		/* the CPU that has reader r's buffer */

hidden byte ak, ai, ac;

#ifdef MUT_ORDER	/* locks are summed before unlocks */
#define place(k,c) (2*(1-(k)) + (c))
#else
#define place(k,c) (2*(k) + (c))
#endif
inline store(k, i, c) {
	open[i] = open[i] + 2*(k) - 1;
	if
#ifdef LIVE	/* one CPU, and its unlocks are loaded first: found never falls, so 1 stands for more */
	:: polled == i && loaded <= place(k,c) && k == LOCK -> found = 1
#else
	:: polled == i && loaded <= place(k,c) -> found = found + 2*(k) - 1
#endif
	:: else
	fi
}
inline drain1(r) {
	sb[r]?ak,ai,ac;
	store(ak, ai, ac);
	if :: len(sb[r]) == 0 -> cpu[r] = 0 :: else fi
}
inline drain(r)  { do :: len(sb[r]) > 0 -> drain1(r) :: else -> break od; skip }

#ifdef ARM
/* A plain store passes older ones to other words; a release store does not. */
#define passing(k,i,c) d_step { sb[r]??[k,i,c] -> sb[r]??k,i,c; store(k, i, c) }
#endif

/* Stores leave the buffers at any time, the oldest first. */
proctype Buffer(byte r)
{
end:	do
	:: d_step { len(sb[r]) > 0 -> drain1(r) }
#ifdef ARM	/* a lock is a plain store */
	:: passing(LOCK, 0, 0)
	:: passing(LOCK, 0, 1)
	:: passing(LOCK, 1, 0)
	:: passing(LOCK, 1, 1)
#ifdef MUT_PLAIN	/* and so is an unlock, which should be a release store */
	:: passing(UNLOCK, 0, 0)
	:: passing(UNLOCK, 0, 1)
	:: passing(UNLOCK, 1, 0)
	:: passing(UNLOCK, 1, 1)
#endif
#endif
	od
}

/* An add on CPU c. The move to another CPU is a full fence on the old one. */
#ifdef FENCED	/* no membarrier: a locked add */
#define add(k,c) drain(r); store(k, i, c)
#else
#define add(k,c) if :: cpu[r] != c -> drain(r); cpu[r] = c :: else fi; sb[r]!k,i,c
#endif
#define room (len(sb[r]) < DEPTH)
#define lock(c) d_step { room -> add(LOCK, c) }
#define use(u) d_step { o = ptr[u]; w = u; assert(o >= freed[u]) }
#define unlock(c) d_step { room -> assert(o >= freed[w]); add(UNLOCK, c); w = 0; o = 0; i = 0 }

proctype Reader(byte r)
{
	byte s;	/* sections begun */
	bit i;	/* the Guard's phase */
	byte w, o;	/* the section uses object o of updater w */

	do
#ifdef LIVE	/* sections without end, on one CPU, that use nothing */
	:: i = phase; lock(0); unlock(0)
#else
	:: s < S ->
		d_step { i = phase; s++ }
		if :: lock(0) :: lock(1) fi;
#if U > 1
		if :: use(0) :: use(1) fi;
#else
		use(0);
#endif
		if :: unlock(0) :: unlock(1) fi
	:: else -> break
#endif
	od
}

/* Unpublish, wait for a grace period that begins after it, free. */
proctype Updater(byte u)
{
	byte k;	/* objects unpublished */
	byte t;	/* the grace period needed */

	do
	:: k < K ->
		d_step { k++; ptr[u] = k }	/* an atomic store: no later load passes it */
#ifdef MUT_JOIN	/* an arrival joins the grace period under way */
		t = (number > done -> number : number + 1);
#else
		t = number + 1;
#endif
end:		d_step { done >= t -> t = 0; freed[u] = k }
	:: else -> break
	od
}

/* membarrier: every thread runs a full barrier at some time before it returns. */
inline membarrier()
{
	if
	:: d_step { drain(0) }; d_step { drain(1) }
	:: d_step { drain(1) }; d_step { drain(0) }
	fi
}

/* One poll of phase i, if that has still to pass, word by word. */
inline poll(i)
{
	if
	:: d_step { !(f & (1 << (i))) -> polled = i; found = open[i]; loaded = 1 }
	   loaded = 2;
#ifdef MUT_ORDER
	   skip;
#else
	   if
	   :: d_step { found > 0 -> loaded = 4; found = 0; polled = 0 }	/* no lock still to come makes it 0 */
	   :: found <= 0 ->
#endif
		loaded = 3;
		d_step {
#if !defined(MUT_ORDER) && !defined(MUT_PLAIN)
			assert(found >= 0);	/* more unlocks than locks are never seen */
#endif
			if :: found == 0 -> f = f | (1 << (i)) :: else fi;
			loaded = 4; found = 0; polled = 0
		}
#ifndef MUT_ORDER
	   fi
#endif
	:: else
	fi
}

/* Once in a grace period, when the idle phase has passed and the current one has not. */
#if defined(MUT_NOFLIP)
#define flipdue false
#elif defined(MUT_SOON)	/* the flip does not wait for the idle phase to pass */
#define flipdue (f != 3 && !flipped)
#else
#define flipdue (f == 1 << (1 - cur) && !flipped)
#endif

/*
 * Grace periods, one after the other, whenever they like. Who drives one does
 * not matter: all that a driver writes is written with full barriers.
 */
proctype Driver()
{
	byte n = 1;	/* the grace period under way */
	byte f;	/* phases that passed */
	bit cur;	/* the phase when the grace period began */
	bit j;	/* the phase polled first in this round */
	bool flipped;

	do
	:: n < GPS + 1 ->
		n++;
#ifdef MUT_EARLY	/* the fence comes before the advance */
		membarrier();
#endif
		number = n;
#if !defined(MUT_EARLY) && !defined(MUT_NOFENCE) && !defined(FENCED)
		membarrier();
#endif
		cur = phase;
#ifdef MUT_ONEPHASE	/* only the phase that new sections count in is looked at */
		f = 1 << (1 - cur);
#endif
end:		do
		:: f != 3 ->	/* a round: polls in any order, then the flip */
			if :: j = 0 :: f == 0 -> j = 1 fi;
			poll(j);
			poll(1 - j);
			d_step {
				if :: flipdue -> phase = 1 - cur; flipped = true :: else fi;
				j = 0
			}
		:: d_step { f == 3 -> f = 0; cur = 0; flipped = false } break
		od;
		done = n
	:: else -> break
	od
}

init {
	atomic {
		run Buffer(0); run Buffer(1);
		run Reader(0); run Reader(1);
		run Updater(0);
#if U > 1
		run Updater(1);
#endif
		run Driver()
	}
}

#ifdef LIVE
ltl live { <> (done == GPS + 1) }
#endif
