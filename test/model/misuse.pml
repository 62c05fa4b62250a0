// misuse.pml - a slot that is freed twice, by any two threads: what src/remote.c and src/arena.c notice.
//
// One slot of a current slab, handed out once. Of the owner and two strangers, any two free it, one after the other, or
// the same thread twice; meanwhile the owner drains and refills as it likes. Asserted:
//   a single free is never called a double free
//   when both frees have returned, the slot is not handed out again: before that, some check ended the program
//
// There is one limit, which LIMIT=1 shows: the second free is remote, and between its look at the live bit and its
// setting of the remote bit, a few instructions, the owner drains the first one and loads the slot into its window.
// Then nothing tells it from a free of the slot's next use. To close this, the two must be one access, and live bits
// that strangers write would cost every free of the owner's a locked instruction.
//
// WRONG=name leaves a check out; run-spin.sh checks that each of those fails.

#ifndef LIMIT
#define LIMIT 0
#endif
#ifndef WRONG
#define WRONG 0
#endif

// pma_remote_free does not look at the live bit.
#define NO_LOOK 1
// It does not look whether the remote bit was set already.
#define NO_OLD 2
// pma_remote_collect does not compare with live.
#define NO_COMPARISON 3
// window_load does not refuse a free slot with a remote bit.
#define NO_REFUSAL 4

bit live = 1;
bit remote;
bit window;

bit freeing;   // a thread is inside of free
byte frees;    // begun
bit looked;    // a stranger is between its look and its mark
bit overtaken; // and the owner drained meanwhile
bit again;     // the slot was handed out again
bit found;     // the program was ended

inline find() {
    assert(frees == 2);
    found = 1
}

// The program's mistake is made before the slot is somebody else's.
#define over (again || found)
#define may_free (frees < 2 && !freeing && !over)

proctype Stranger() {
    do
    :: atomic { may_free -> freeing = 1; frees++ };
        atomic {
            if
            :: !live && WRONG != NO_LOOK -> find()
            :: else -> looked = 1; overtaken = 0
            fi
        };
        atomic {
            if
            :: !found && remote && WRONG != NO_OLD -> find()
            :: !found && (!remote || WRONG == NO_OLD) -> remote = 1
            :: else -> skip
            fi;
            looked = 0;
            freeing = 0
        }
    :: over || frees == 2 -> break
    od
}

proctype Owner() {
    bit bits;
    do
    // free
    :: atomic { may_free -> frees++;
            if
            :: live -> live = 0
            :: else -> find()
            fi }
    // pma_remote_collect
    :: atomic { !over && remote -> bits = remote; remote = 0 };
        atomic {
            if
            :: bits && !live && WRONG != NO_COMPARISON -> find()
            :: else -> live = live & !bits; overtaken = looked
            fi;
            bits = 0 }
    // window_load, bin_take
    :: atomic { !over && !window && !live ->
            if
            :: remote && WRONG != NO_REFUSAL -> find()
            :: else -> window = 1
            fi }
    :: atomic { !over && window ->
            assert(frees < 2 || freeing || (overtaken && !LIMIT));
            window = 0;
            live = 1;
            again = 1 }
    :: over -> break
    :: !over && frees == 1 && !freeing -> break
    od
}

init {
    atomic { run Owner(); run Stranger(); run Stranger() }
}
