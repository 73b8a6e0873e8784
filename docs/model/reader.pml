/*
 * The Reader protocol of package rcu: one published word per Reader, one
 * membarrier per grace period.
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
#define DEPTH (3*S)	/* a store buffer holds all that one reader can store */

byte number = 1;	/* newest grace period begun */
byte done = 1;		/* newest grace period ended */
byte seen[R];		/* what each Reader shows: 0, or the number it copied */
byte ptr[U];		/* the object that updater u published last */
byte freed[U];		/* the objects of updater u below freed[u] are freed */

/* The store buffers, one for the thread of each reader: what seen[r] is to be. */
chan sb[R] = [DEPTH] of { byte };

inline drain1(r) { sb[r]?seen[r] }
inline drain(r)  { do :: len(sb[r]) > 0 -> drain1(r) :: else -> break od; skip }

/* Stores leave the buffers at any time, the oldest first. */
proctype Buffer(byte r)
{
end:	do
	:: drain1(r)
	od
}

/* Publishing is a store that stays in the buffer or, in fenced mode, an exchange. */
#ifdef FENCED
#define publish(x) drain(r); seen[r] = x
#else
#define publish(x) sb[r]!x
#endif
#define use(u) d_step { o = ptr[u]; w = u; assert(o >= freed[u]) }

proctype Reader(byte r)
{
	byte s;	/* sections begun */
	byte m;	/* number copied and not yet published */
	byte w, o;	/* the section uses object o of updater w */

	do
	:: s < S ->
		d_step { m = number; s++ }
		d_step { true -> publish(m); m = 0 }
#if U > 1
		if :: use(0) :: use(1) fi;
#else
		use(0);
#endif
#ifdef MUT_NEST	/* a nested Lock copies the number again */
		if
		:: m = number; d_step { publish(m); m = 0 }
		:: skip
		fi;
#endif
		if
		:: d_step { assert(o >= freed[w]); sb[r]!0; w = 0; o = 0 }
		:: d_step { s < S -> assert(o >= freed[w]); w = 0; o = 0 }	/* Refresh shows no 0 */
		fi
	:: else -> break
	od
}

#ifdef MUT_LAZY
/* The unpublishing store is a plain one, and the arrival no barrier: number is loaded while the store is under way. */
chan ub[U] = [1] of { byte };
proctype UpdaterBuffer(byte u)
{
end:	do
	:: ub[u]?ptr[u]
	od
}
#define unpublish(x) ub[u]!x
#else
#define unpublish(x) ptr[u] = x	/* an atomic store: no later load passes it */
#endif

/* Unpublish, wait for a grace period that begins after it, free. */
proctype Updater(byte u)
{
	byte k;	/* objects unpublished */
	byte t;	/* the grace period needed */

	do
	:: k < K ->
		d_step { k++; unpublish(k) }
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
	fi;
#ifdef MUT_LAZY
	d_step { if :: len(ub[0]) > 0 -> ub[0]?ptr[0] :: else fi }	/* MUT_LAZY has one updater */
#endif
}

#ifdef MUT_OLD	/* who copied the number just before the advance counts as new */
#define passes(r) (seen[r] == 0 || seen[r] + 1 >= n)
#else
#define passes(r) (seen[r] == 0 || seen[r] >= n)
#endif

/*
 * Grace periods, one after the other, whenever they like. Who drives one does
 * not matter: all that a driver writes is written with full barriers.
 */
proctype Driver()
{
	byte n = 1;	/* the grace period under way */
	byte f;	/* Readers that passed */

	do
	:: n < GPS + 1 ->
		n++;
#ifdef MUT_EARLY	/* the fence comes before the advance */
		membarrier();
#endif
#ifndef MUT_LATE	/* the advance comes after the scan */
		number = n;
#endif
#if !defined(MUT_EARLY) && !defined(MUT_NOFENCE) && !defined(FENCED)
		membarrier();
#endif
end:		do
		:: d_step { !(f & 1) && passes(0) -> f = f | 1 }
		:: d_step { !(f & 2) && passes(1) -> f = f | 2 }
		:: d_step { f == 3 -> f = 0 } break
		od;
#ifdef MUT_LATE
		number = n;
#endif
		done = n
	:: else -> break
	od
}

init {
	atomic {
		run Buffer(0); run Buffer(1);
		run Reader(0); run Reader(1);
#ifdef MUT_LAZY
		run UpdaterBuffer(0);
#endif
		run Updater(0);
#if U > 1
		run Updater(1);
#endif
		run Driver()
	}
}
