/*
 * The fast path of Guards in package rcu: words of the CPU, claimed by a
 * restartable sequence, that show the number of the grace period; one
 * membarrier per grace period.
 *
 * README.md says what is modelled, with which bounds, and what it leaves out.
 * The bounds are macros (spin -DNAME=value). A MUT_ macro breaks one rule of
 * the protocol: spin must then find a reader that uses a freed object, or a
 * grace period that never ends.
 */
#ifndef R
#define R 2	/* readers, 2 or 3 */
#endif
#ifndef S
#define S 2	/* sections of each reader */
#endif
#ifndef W
#define W 1	/* words of each CPU, 1 or 2 */
#endif
#ifndef K
#define K 1	/* objects that the updater replaces and frees */
#endif
#ifndef GPS
#define GPS 2	/* grace periods */
#endif
#define DEPTH (3*S)	/* a store buffer holds all that one reader can store */

#define WORDS (2*W)	/* word w is of CPU w/W */
#define NONE WORDS
#define MARK 64		/* who ends the section makes way */
#define ALL ((1 << WORDS) - 1)

byte number = 1;	/* newest grace period begun */
byte done = 1;		/* newest grace period ended */
byte word[WORDS];	/* 0, or the number that the word's section copied, and MARK */
byte ptr;		/* the object that was published last */
byte freed;		/* the objects below it are freed */
#ifdef FIRST
bit opened;		/* somebody has opened the words, or is about to */
bit base;		/* the words may be claimed */
#endif

/*
 * The store buffers, one for each CPU: what a word is to be. All stores in one
 * are of the same thread, since the switch to another one empties it.
 */
chan sb[2] = [DEPTH] of { byte, byte };
byte by[2];		/* the reader whose stores they are */

hidden byte ai, aw, av, au;

inline applied(c) { word[aw] = av; if :: len(sb[c]) == 0 -> by[c] = 0 :: else fi }
inline drain1(c) { sb[c]?aw,av; applied(c) }
inline drain(c)  { do :: len(sb[c]) > 0 -> drain1(c) :: else -> break od; skip }

#ifdef ARM
/* A claim is a plain store, which passes older ones to other words; an Unlock is a release store. */
#define buffered(w) (sb[c]??[w,0] || sb[c]??[w,1] || sb[c]??[w,2] || sb[c]??[w,3] || sb[c]??[w,4])
#define passing(w) d_step { buffered(w) -> \
	sb[c]?? <w,av>; if :: av != 0 -> aw = w; sb[c]??w,av; applied(c) :: else fi }
#endif

/* Stores leave the buffers at any time, the oldest first. */
proctype Buffer(byte c)
{
end:	do
	:: d_step { len(sb[c]) > 0 -> drain1(c) }
#ifdef ARM
	:: passing(0)
	:: passing(1)
#if W > 1
	:: passing(2)
	:: passing(3)
#endif
#endif
	od
}

/* Reader r runs on CPU c. If another did, or r on the other CPU, the kernel's switch is a full fence. */
inline runon(c) {
	if :: len(sb[c]) > 0 && by[c] != r -> drain(c) :: else fi;
	if :: len(sb[1-(c)]) > 0 && by[1-(c)] == r -> drain(1-(c)) :: else fi
}
inline store(c, x, v) { sb[c]!x,v; by[c] = r }

/* av is word x as CPU c sees it: the newest of its own stores, or what is in memory. */
inline load(c, x) {
	av = word[x];
	ai = len(sb[c]);
	do
	:: ai > 0 -> sb[c]?aw,au; if :: aw == x -> av = au :: else fi; sb[c]!aw,au; ai--
	:: else -> break
	od
}

/* w is the first word of CPU c that is 0. If it is NONE, the section is one of guard.pml's. */
inline look(c) {
	runon(c);
#ifdef MUT_BLIND	/* the claim does not look whether the word is 0 */
	w = (c)*W;
#else
	load(c, (c)*W);
	w = (av == 0 -> (c)*W : NONE);
#if W > 1
	load(c, (c)*W+1);
	w = (w == NONE && av == 0 -> (c)*W+1 : w)
#endif
#endif
}
inline take(c) { if :: w != NONE -> store(c, w, m) :: else fi; m = 0 }
#define room(c) (len(sb[c]) < DEPTH)

#ifdef MUT_TORN	/* no sequence: others may run on the CPU between the look and the store */
#define claim(c) d_step { look(c) }; if :: torn(0) :: torn(1) fi
#define torn(c) d_step { room(c) -> runon(c); take(c) }
#else
#define claim(c) d_step { room(c) -> look(c); take(c) }
#endif
#define renumber(c) d_step { room(c) -> runon(c); store(c, w, number) }
#define use d_step { o = ptr; assert(o >= freed) }
#define unlock(c) d_step { room(c) -> assert(o >= freed); runon(c); store(c, w, 0); w = 0; o = 0 }

proctype Reader(byte r)
{
	byte s;	/* sections begun */
	byte m;	/* number copied and not yet shown */
	byte w;	/* the word claimed */
	byte o;	/* the object that the section uses */

	do
#ifdef LIVE	/* sections without end, that use nothing */
	:: m = number;
#else
	:: s < S ->
#ifdef FIRST
		if
		:: base
#ifdef MUT_OPENFIRST	/* the words are opened before the flag says so */
		:: else -> base = 1; opened = 1
#else
		:: else -> opened = 1; base = 1
#endif
		fi;
#endif
		d_step { m = number; s++ }
#endif
#if defined(RENUMBER) || defined(MUT_RENUMBER)	/* the word is claimed with a number older than any */
		m = 1;
#endif
		if :: claim(0) :: claim(1) fi;
		if
		:: w != NONE ->
#ifdef RENUMBER	/* and then shows the number */
			if :: renumber(0) :: renumber(1) fi;
#endif
			use;
#ifdef MUT_RENUMBER	/* but only after the first use */
			if :: renumber(0) :: renumber(1) fi;
#endif
			if :: unlock(0) :: unlock(1) fi
		:: else -> w = 0	/* no word */
		fi
#ifndef LIVE
	:: else -> break
#endif
	od
}

/* Unpublish, wait for a grace period that begins after it, free. */
proctype Updater()
{
	byte k;	/* objects unpublished */
	byte t;	/* the grace period needed */

	do
	:: k < K ->
		d_step { k++; ptr = k }	/* an atomic store: no later load passes it */
#ifdef MUT_JOIN	/* an arrival joins the grace period under way */
		t = (number > done -> number : number + 1);
#else
		t = number + 1;
#endif
end:		d_step { done >= t -> t = 0; freed = k }
	:: else -> break
	od
}

/* membarrier: every CPU runs a full barrier at some time before it returns. */
inline membarrier()
{
	if
	:: d_step { drain(0) }; d_step { drain(1) }
	:: d_step { drain(1) }; d_step { drain(0) }
	fi
}

#define shown(w) (word[w] & (MARK - 1))
#ifdef MUT_MARK	/* the mark is not masked */
#define passes(w) (word[w] == 0 || word[w] >= n)
#elif defined(MUT_OLD)	/* who copied the number just before the advance counts as new */
#define passes(w) (word[w] == 0 || shown(w) + 1 >= n)
#elif defined(MUT_ZERO)	/* who copied the grace period's own number is waited for, too */
#define passes(w) (word[w] == 0)
#else
#define passes(w) (word[w] == 0 || shown(w) >= n)
#endif

#define pass(w) d_step { !(f & (1 << w)) && passes(w) -> f = f | (1 << w) }
#define unmarked(w) (!(f & (1 << w)) && !passes(w) && word[w] < MARK)
#ifdef MUT_STORE	/* the mark is set by a load and a store */
#define hurry(w) d_step { unmarked(w) -> hw = w; hv = word[w] | MARK }; d_step { word[hw] = hv; hw = 0; hv = 0 }
#else		/* a compare-and-swap that succeeds, whenever the word was loaded */
#define hurry(w) d_step { unmarked(w) -> word[w] = word[w] | MARK }
#endif

/*
 * Grace periods, one after the other, whenever they like. Who drives one does
 * not matter: all that a driver writes is written with full barriers.
 */
proctype Driver()
{
	byte n = 1;	/* the grace period under way */
	byte f;	/* words that passed */
#ifdef MUT_STORE
	byte hw, hv;
#endif

	do
	:: n < GPS + 1 ->
		n++;
#ifdef MUT_FLAGFIRST	/* the flag is loaded before the advance */
		f = (opened -> 0 : ALL);
#endif
#ifdef MUT_EARLY	/* the fence comes before the advance */
		membarrier();
#endif
#ifndef MUT_LATE	/* the advance comes after the scan */
		number = n;
#endif
#if !defined(MUT_EARLY) && !defined(MUT_NOFENCE)
		membarrier();
#endif
#if defined(FIRST) && !defined(MUT_FLAGFIRST)	/* without any claim until now, there is nothing to look at */
		f = (opened -> 0 : ALL);
#endif
#ifdef MUT_SKIP	/* the last word is not looked at */
		f = 1 << (WORDS - 1);
#endif
		do
		:: pass(0)
		:: pass(1)
		:: hurry(0)
		:: hurry(1)
#if W > 1
		:: pass(2)
		:: pass(3)
		:: hurry(2)
		:: hurry(3)
#endif
		:: d_step { f == ALL -> f = 0 } break
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
#if R > 2
		run Reader(2);
#endif
		run Updater();
		run Driver()
	}
}

#ifdef LIVE
ltl live { <> (done == GPS + 1) }
#endif
