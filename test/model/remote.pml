// remote.pml - the owner of slabs and the threads that free slots from outside: src/remote.c and src/arena.c.
//
// How to read it. A statement, or an atomic block, is one step that other threads see whole: one access to what is
// shared, and what the thread makes of it alone. Each inline names the function of src/ that it stands for. Memory is
// sequentially consistent here, as the atomics are there; where the code gets by with less it says so.
//
// Two strangers free whatever the program holds; the owner allocates, frees, drains, refills, leaves slabs and takes
// them again, in any order, and between two calls it may fall asleep for ever. With ENDS the thread may end, so that
// its arena is idle, and a new thread may adopt it. With FORK the process may fork while the owner is outside of a slow
// path: strangers vanish in the middle of whatever they do, and new ones come.
//
// What is asserted:
//   no slot is handed out twice, and none while it is live (bin_take)
//   the owner never sees a remote bit on a free slot: no false "double free" (window_load, pma_remote_collect)
//   a run is given back once, and only when none of its slots is in use (give_pages)
//   a pointer in the hands of the program leads to its slab (Stranger, and the owner's free)
//   and whenever all are at rest (check_rest):
//   a slab all of whose slots are free was given back, if its last free came from outside, or the arena is idle
//   every remote bit is in a slab of the inbox, every husk is where its owner will find it, the inbox is a list
//   in an idle arena the inbox is empty: no drain was missed
//   no run is lost
//
// Simplifications, and why they lose nothing:
//   The owner's "load the state, then compare and swap" is one step: only a claim can come between, and a failed swap
//   leads where a state of GONE leads, to slab_bury.
//   The version counts sessions only, not every change: between two sessions a slab's kind never returns.
//   Whether a slab has enough free slots to be attached is left open: slots_wanted is a matter of speed.
//   The second stranger frees only while the first is busy: two strangers at rest are alike.
//
// WRONG=name makes one step wrong; run-spin.sh checks that each of those fails. The reasons stand beside them.

#ifndef SLABS
#define SLABS 1 // descriptors of the arena
#endif
#ifndef RUNS
#define RUNS 1 // runs of the page heap
#endif
#ifndef WORDS
#define WORDS 2 // words of a slab
#endif
#ifndef SLOTS
#define SLOTS 1 // slots of a word
#endif
#ifndef MALLOCS
#define MALLOCS 3 // calls of malloc, all in all
#endif
#ifndef SESSIONS
#define SESSIONS 2 // how often a slab becomes current, all in all
#endif
#ifndef OWNER_FREES
#define OWNER_FREES 1
#endif
#ifndef ENDS
#define ENDS 0
#endif
#ifndef FORK
#define FORK 0
#endif
#ifndef CLAIM_FIRST
#define CLAIM_FIRST 0 // 1: the other order of the push and the claim, which is as good
#endif
#ifndef WRONG
#define WRONG 0
#endif

// ---- the variants that must fail

// The claim compares the kind only. Between its look at one word and at the next, the slab is drained, taken, its slots
// handed out again, and left: the claim gives back live slots.
#define NO_VERSION 1
// The state is loaded after the words were looked at: the same.
#define STATE_LATE 2
// Whether the word is complete is judged by the live bits seen before the own bit was set. The owner frees the word's
// other slot in between: nobody sees the word complete.
#define STALE_LIVE 3
// After a failed swap the claimer goes away, and the owner, whose DETACHED -> ATTACHED made it fail, does not look
// again either. (One of the two looks would be enough.)
#define NO_RETRY 4
// The owner does not look again after it left a slab: what was freed while it was current was claimed by nobody.
#define NO_LOOK_LEAVING 5
// Nor after a drain: a claimer came between the exchange of a word and the change of live, and saw it incomplete.
#define NO_LOOK_DRAINED 6
// queued is cleared after the words were taken: a bit set in between finds 1 and is not pushed.
#define QUEUED_LATE 7
// queued is cleared before next was read: a stranger pushes the slab again and changes next.
#define NEXT_LATE 8
// The reuse of a descriptor clears queued, while a stranger is about to push it, or has.
#define REUSE_CLEARS_QUEUED 9
// The pages go back before the page map is cleared: their next use is cleared with it.
#define MAP_LATE 10
// The claimer reads which pages to give back after the claim: the owner has used the descriptor again.
#define PAGES_LATE 11
// The claimer claims whatever the descriptor is by now, with the pages that it was.
#define NO_INCARNATION 12
// A current slab can be claimed: the owner hands out of it.
#define CLAIM_CURRENT 13
// The drain clears live bits by a look at the remote bits, and those afterwards: bits that came in between are lost.
#define LIVE_FIRST 14
// Whoever pushes into an idle arena goes away.
#define NO_VISIT 15
// Whoever unlocks an idle arena goes away without another look: a push that met the lock is left alone.
#define NO_SECOND_VISIT 16
// At its end a thread lets go of the arena without leaving its current slab, which an idle drain cannot give back.
#define CURRENT_STAYS 17
// The forked child does nothing about marks that nobody will push.
#define FORK_FORGETS 18
// The forked child empties the inbox and clears queued when the owner comes to it: strangers of the child push
// meanwhile, and a slab is in the inbox twice. What the page map does not know keeps its mark, and is never pushed.
#define FORK_CLEARS_LATE 19

// The owner's free that empties a slab does not look whether it is a husk by then: a claimer that stalled saw it
// empty. Its descriptor is lost, since a slab that was drained is in no inbox.
#define HUSK_UNNOTICED 20

// ---- names

#define FULL ((1 << SLOTS) - 1)
#define NONE 15
#define AT(x, word) ((x) * WORDS + (word))

// enum slab_state
#define UNUSED 0
#define CURRENT 1
#define ATTACHED 2
#define DETACHED 3
#define GONE 4

// A state is a kind and a version; the incarnation, which lies in the same word of memory there, has its own byte here
// and is only looked at together with it.
#define kind_of(state) ((state) & 7)
#define to_kind(state, kind) (((state) & ~7) | (kind))
#if WRONG == NO_VERSION
#define to_current(state) CURRENT
#else
#define to_current(state) ((((state) & ~7) + 8) | CURRENT)
#endif
#if WRONG == CLAIM_CURRENT
#define is_settled(state) (kind_of(state) == ATTACHED || kind_of(state) == DETACHED || kind_of(state) == CURRENT)
#else
#define is_settled(state) (kind_of(state) == ATTACHED || kind_of(state) == DETACHED)
#endif
#if WRONG == NO_INCARNATION
#define is_the_same(slab) true
#else
#define is_the_same(slab) (incarnation[slab] == born)
#endif

// Read by all.
byte live[SLABS * WORDS];
byte remote[SLABS * WORDS];
byte state[SLABS];
byte incarnation[SLABS];
byte queued[SLABS];
byte next[SLABS] = NONE;
byte start[SLABS]; // which run
byte inbox = NONE;
byte pagemap[RUNS] = NONE;

#if ENDS
bit idle;
bit adoption; // the lock
#else
#define idle 0
#endif

// Set by fork, once; and by the recount that follows it.
#if FORK
bit forked;
bit recounted;
#else
#define forked 0
#define recounted 1
#define child 0
#endif

// What a push writes into queued. Another mark means: not queued.
#if FORK && WRONG != FORK_CLEARS_LATE && WRONG != FORK_FORGETS
#define generation (1 + forked)
#else
#define generation 1
#endif
#define is_queued(slab) (queued[slab] == generation)

// The owner's, or of the holder of the adoption lock while the arena is idle.
bit attached[SLABS]; // in its bin's queue
byte current = NONE;
byte current_word;
byte window;
byte mallocs;
byte sessions;

// The truth, for the assertions.
bit taken[RUNS];          // from the page heap
byte held[RUNS * WORDS];  // slots that the program holds, and no thread is freeing
byte used[RUNS * WORDS];  // slots handed out and not freed: a free counts from its one decisive step
bit remote_last[RUNS];    // the last free came from outside
bit lost[RUNS];           // the thread that gave it back vanished in a fork
bit asleep;
bit busy[2];

// ---- runs and descriptors

// pma_pageheap_give
inline give_pages(pages) {
    d_step {
        assert(taken[pages]);
        x = 0;
        do
        :: x < WORDS -> assert(used[AT(pages, x)] == 0); x++
        :: else -> break
        od;
        x = 0;
        taken[pages] = 0
    }
}

// slab_bury: a husk is of use again, in the inbox or not.
inline bury(slab) {
    state[slab] = to_kind(state[slab], UNUSED);
#if WRONG == REUSE_CLEARS_QUEUED
    queued[slab] = 0;
#endif
    attached[slab] = 0
}

// The owner's half of slab_release, after the change to GONE. Nobody can see the order of these.
inline release(slab) {
    pagemap[start[slab]] = NONE;
    give_pages(start[slab]);
    bury(slab)
}

inline look_at_live(slab) {
    x = 0;
    alive = 0;
    room = 0;
    do
    :: x < WORDS ->
        if :: live[AT(slab, x)] != 0 -> alive = 1 :: else -> skip fi;
        if :: live[AT(slab, x)] != FULL -> room = 1 :: else -> skip fi;
        x++
    :: else -> break
    od;
    x = 0
}

// slab_look_again. Only the owner writes live, so a word is compared in one step.
inline look_again(slab) {
    w = 0;
    do
    :: atomic { w < WORDS && remote[AT(slab, w)] == live[AT(slab, w)] -> w++ }
    :: atomic { w < WORDS && remote[AT(slab, w)] != live[AT(slab, w)] -> w = 0; break }
    :: atomic { w == WORDS ->
            if
            :: is_settled(state[slab]) -> state[slab] = to_kind(state[slab], GONE); release(slab)
            :: kind_of(state[slab]) == GONE -> bury(slab)
            :: else -> skip
            fi;
            w = 0;
            break }
    od
}

// pma_remote_collect. A word that reads as zero is left alone: a bit that comes later finds queued cleared.
inline collect(slab) {
    w = 0;
    do
    :: w == WORDS -> w = 0; break
#if WRONG == LIVE_FIRST
    :: atomic { w < WORDS -> live[AT(slab, w)] = live[AT(slab, w)] & ~remote[AT(slab, w)] };
        atomic { remote[AT(slab, w)] = 0; w++ }
#else
    :: atomic { w < WORDS && remote[AT(slab, w)] == 0 -> w++ }
    :: atomic { w < WORDS && remote[AT(slab, w)] != 0 ->
            bits = remote[AT(slab, w)];
            remote[AT(slab, w)] = 0;
            assert((bits & ~live[AT(slab, w)]) == 0) };
        atomic { live[AT(slab, w)] = live[AT(slab, w)] & ~bits; bits = 0; w++ }
#endif
    od
}

// slab_settle, and the cases of slab_drain and pma_arena_notice that do not come to it: after live bits were cleared.
// Sets goes_on if the slab is to be looked at again.
inline settle(slab, after_drain) {
    atomic {
        look_at_live(slab);
        if
        :: kind_of(state[slab]) == GONE && (after_drain || (!alive && WRONG != HUSK_UNNOTICED)) -> bury(slab)
        :: is_settled(state[slab]) && !alive -> state[slab] = to_kind(state[slab], GONE); release(slab)
        :: kind_of(state[slab]) == DETACHED && alive && room ->
            state[slab] = to_kind(state[slab], ATTACHED);
            attached[slab] = 1;
            goes_on = (WRONG != NO_RETRY) || after_drain
        :: is_settled(state[slab]) && alive -> goes_on = after_drain
        :: else -> skip
        fi;
        alive = 0;
        room = 0
    };
    if
    :: goes_on ->
        goes_on = 0;
#if WRONG != NO_LOOK_DRAINED
        look_again(slab)
#endif
    :: else -> skip
    fi
}

// pma_arena_drain, with pma_inbox_take_all, pma_inbox_next and slab_drain.
inline drain() {
    atomic { list = inbox; inbox = NONE };
    do
    :: atomic { list == NONE -> list = 0; break }
    :: atomic { list != NONE ->
            slab = list;
#if WRONG == NEXT_LATE
            queued[slab] = 0 };
        atomic { list = next[slab];
#elif WRONG == QUEUED_LATE
            list = next[slab];
#else
            list = next[slab];
            queued[slab] = 0;
#endif
            if
            :: kind_of(state[slab]) == GONE -> bury(slab)
            :: else -> skip
            fi };
        if
        :: kind_of(state[slab]) != UNUSED -> collect(slab); settle(slab, 1)
        :: else -> skip
        fi;
#if WRONG == QUEUED_LATE
        queued[slab] = 0;
#endif
        slab = 0
    od
}

// pma_arena_visit
inline visit() {
    do
    :: !idle -> break
    :: else ->
        if
        :: inbox == NONE -> break
        :: else ->
            if
            :: atomic { adoption == 0 -> adoption = 1 };
                if
                :: idle -> drain()
                :: else -> skip
                fi;
                adoption = 0;
#if WRONG == NO_SECOND_VISIT
                break
#endif
            :: adoption == 1 -> break
            fi
        fi
    od
}

// ---- at rest: nobody is inside a call, and the owner sleeps for ever

inline check_slab() {
    assert((mask >> slab & 1) == is_queued(slab) || !recounted);
    assert(!idle || !is_queued(slab));
    if
    :: kind_of(state[slab]) == UNUSED -> skip
    // A husk whose thread vanished in a fork may be lost, like its run.
    :: kind_of(state[slab]) == GONE -> assert(is_queued(slab) || attached[slab] || forked); assert(!idle)
    :: else ->
        assert(taken[start[slab]] && pagemap[start[slab]] == slab);
        assert(attached[slab] == (kind_of(state[slab]) == ATTACHED));
        x = 0;
        alive = 0;
        do
        :: x < WORDS ->
            assert(remote[AT(slab, x)] == 0 || is_queued(slab) || !recounted);
            assert((live[AT(slab, x)] & ~remote[AT(slab, x)]) == used[AT(start[slab], x)]);
            if :: used[AT(start[slab], x)] != 0 -> alive = 1 :: else -> skip fi;
            x++
        :: else -> break
        od;
        assert(alive || !recounted || (!idle && (kind_of(state[slab]) == CURRENT || !remote_last[start[slab]])));
        alive = 0;
        x = 0
    fi
}

inline check_rest() {
    if
    :: asleep && !busy[0] && !busy[1] ->
        list = inbox;
        mask = 0;
        do
        :: list != NONE -> assert((mask & (1 << list)) == 0); mask = mask | (1 << list); list = next[list]
        :: else -> break
        od;
        slab = 0;
        do
        :: slab < SLABS -> check_slab(); slab++
        :: else -> break
        od;
        slab = 0;
        do
        :: slab < RUNS ->
            assert(!taken[slab] || lost[slab] || (pagemap[slab] != NONE && start[pagemap[slab]] == slab &&
                kind_of(state[pagemap[slab]]) != UNUSED && kind_of(state[pagemap[slab]]) != GONE));
            slab++
        :: else -> break
        od;
        slab = 0;
        list = 0;
        mask = 0
    :: else -> skip
    fi
}

// Any place where a slot might be.
inline choose_place() {
    pages = 0;
    do :: pages < RUNS - 1 -> pages++ :: break od;
    word = 0;
    do :: word < WORDS - 1 -> word++ :: break od;
    slot = 1;
    do :: slot < 1 << (SLOTS - 1) -> slot = slot << 1 :: break od
}

// ---- pma_remote_free, in a thread that does not own the slab

// The mark: from here on the slot is free, and the slab may go away at any moment.
inline set_remote_bit() {
#if WRONG == STALE_LIVE
    seen = live[AT(mine, word)];
#endif
    atomic {
        old = remote[AT(mine, word)];
        assert((old & slot) == 0);
        remote[AT(mine, word)] = old | slot;
        used[AT(pages, word)] = used[AT(pages, word)] & ~slot;
        remote_last[pages] = 1
    }
}

// Whoever made the word nonzero, and finds the slab not queued, pushes it: inbox_push.
inline push_if_first() {
    atomic {
        if
        :: old == 0 && !is_queued(mine) -> queued[mine] = generation; pushed = 1
        :: else -> goto push_over
        fi
    };
push:
    atomic { list = inbox; next[mine] = list };
    atomic {
        if
        :: inbox == list -> inbox = mine; list = 0
        :: else -> list = 0; goto push
        fi
    };
push_over:
    skip
}

// claim_if_complete. The loop ends: each round that fails is a change of state by the owner, or another's claim.
inline claim_if_complete() {
    atomic {
#if WRONG != STALE_LIVE
        seen = live[AT(mine, word)];
#endif
        if
        :: (old | slot) == seen -> seen = 0
        :: else -> goto claim_over
        fi
    };
claim:
#if WRONG != STATE_LATE
    atomic {
        seen = state[mine];
        if
        :: is_settled(seen) && is_the_same(mine) -> skip
        :: else -> goto claim_over
        fi
    };
#endif
compare:
    bits = remote[AT(mine, w)];
    atomic {
        if
        :: live[AT(mine, w)] == bits -> bits = 0; w++
        :: else -> goto claim_over
        fi;
        if
        :: w < WORDS -> goto compare
        :: else -> w = 0
        fi
    };
#if WRONG == STATE_LATE
    atomic {
        seen = state[mine];
        if
        :: is_settled(seen) && is_the_same(mine) -> skip
        :: else -> goto claim_over
        fi
    };
#endif
    atomic {
        if
        :: state[mine] == seen -> state[mine] = to_kind(seen, GONE); seen = 0; giving = 1
#if WRONG == NO_RETRY
        :: else -> goto claim_over
#else
        :: else -> seen = 0; goto claim
#endif
        fi
    };
    // pma_slab_give_pages
#if WRONG == PAGES_LATE
    pages = start[mine];
#endif
#if WRONG == MAP_LATE
    give_pages(pages);
    atomic { pagemap[pages] = NONE; giving = 0 };
#else
    pagemap[pages] = NONE;
    atomic { give_pages(pages); giving = 0 };
#endif
claim_over:
    atomic { seen = 0; w = 0; bits = 0 }
}

// A pointer that leads to its slab, and the slot's live bit, cannot change while the program holds the slot.
inline choose_slot_of_another() {
    atomic {
        (me == 0 || busy[0]) && child == forked ->
        choose_place();
        if
        :: (held[AT(pages, word)] & slot) != 0 -> skip
        :: else -> pages = 0; word = 0; slot = 0; goto end_stranger
        fi;
        held[AT(pages, word)] = held[AT(pages, word)] & ~slot;
        busy[me] = 1;
        mine = pagemap[pages];
        assert(mine != NONE);
        assert(start[mine] == pages && (live[AT(mine, word)] & slot) != 0);
        born = incarnation[mine]
    }
}

proctype Stranger(bit me) {
    byte pages, word, slot;     // the slot in its hands
    byte mine, born, old, seen; // its slab, and what was read of it
    byte slab, list, w, bits, mask, x;
    bit alive, room, goes_on, pushed, giving;
#if FORK
    bit child;
again:
    { skip;
#endif
end_stranger:
    do
    :: choose_slot_of_another();
        set_remote_bit();
#if CLAIM_FIRST
        claim_if_complete();
        push_if_first();
#else
        push_if_first();
        claim_if_complete();
#endif
        atomic { pages = 0; word = 0; slot = 0; mine = 0; born = 0; old = 0 };
#if ENDS && WRONG != NO_VISIT
        if
        :: pushed -> visit()
        :: else -> skip
        fi;
#endif
        atomic { pushed = 0; busy[me] = 0; check_rest() }
    od
#if FORK
    } unless { forked && !child };
    // The parent's thread is gone, wherever it was; this is one of the child's from now on.
    atomic {
        if :: giving -> lost[pages] = 1 :: else -> skip fi;
        pages = 0; word = 0; slot = 0; mine = 0; born = 0; old = 0; seen = 0;
        list = 0; w = 0; bits = 0; pushed = 0; giving = 0;
        child = 1;
        busy[me] = 0;
        check_rest()
    };
    goto again
#endif
}

// ---- the thread that has the arena

// bin_take: the window, then live.
inline take_slot() {
    mallocs++;
    slot = 1;
    do :: slot < 1 << (SLOTS - 1) -> slot = slot << 1 :: break od;
    if
    :: (window & slot) == 0 -> slot = window & (FULL + 1 - window)
    :: else -> skip
    fi;
    window = window & ~slot;
    pages = start[current];
    assert(taken[pages] && pagemap[pages] == current);
    assert((live[AT(current, current_word)] & slot) == 0 && (used[AT(pages, current_word)] & slot) == 0);
    live[AT(current, current_word)] = live[AT(current, current_word)] | slot;
    used[AT(pages, current_word)] = used[AT(pages, current_word)] | slot;
    held[AT(pages, current_word)] = held[AT(pages, current_word)] | slot;
    slot = 0;
    pages = 0
}

// window_load, of any word of the current slab.
inline load_window() {
    word = 0;
    do :: word < WORDS - 1 -> word++ :: break od;
    window = FULL & ~live[AT(current, word)];
    assert((remote[AT(current, word)] & window) == 0);
    if
    :: window != 0 -> current_word = word
    :: else -> current_word = 0
    fi;
    word = 0
}

// slab_detach, slab_retire and bin_rest: full or not, the slab is current no more.
inline leave_current(in_queue) {
    atomic {
        slab = current;
        current = NONE;
        current_word = 0;
        window = 0;
        look_at_live(slab);
        if
        :: room && in_queue -> state[slab] = to_kind(state[slab], ATTACHED); attached[slab] = 1
        :: else -> state[slab] = to_kind(state[slab], DETACHED)
        fi;
        alive = 0;
        room = 0
    };
#if WRONG != NO_LOOK_LEAVING
    look_again(slab);
#endif
    slab = 0
}

// slab_with_room, of any slab in the queue.
inline take_attached() {
    slab = 0;
    do :: slab < SLABS - 1 -> slab++ :: break od;
    if
    :: attached[slab] && kind_of(state[slab]) == ATTACHED ->
        state[slab] = to_current(state[slab]);
        attached[slab] = 0;
        current = slab;
        sessions++
    :: attached[slab] && kind_of(state[slab]) != ATTACHED -> assert(kind_of(state[slab]) == GONE); bury(slab)
    :: else -> skip
    fi;
    slab = 0
}

// slab_new: the descriptor is made ready while nobody may claim it, then the state, then the page map.
inline make_slab() {
    atomic {
        slab = 0;
        do :: slab < SLABS - 1 -> slab++ :: break od;
        pages = 0;
        do :: pages < RUNS - 1 -> pages++ :: break od;
        if
        :: kind_of(state[slab]) == UNUSED && !taken[pages] ->
            taken[pages] = 1;
            remote_last[pages] = 0;
            start[slab] = pages;
            x = 0;
            do
            :: x < WORDS -> live[AT(slab, x)] = 0; remote[AT(slab, x)] = 0; x++
            :: else -> break
            od;
            x = 0
        :: else -> pages = 0; slab = 0; goto life
        fi
    };
    atomic { state[slab] = to_current(state[slab]); incarnation[slab]++ };
    atomic { pagemap[pages] = slab; current = slab; sessions++; pages = 0; slab = 0 }
}

// free, where the pointer leads to a slab of the own arena; then pma_arena_notice.
inline free_own() {
    atomic {
        choose_place();
        if
        :: (held[AT(pages, word)] & slot) != 0 -> skip
        :: else -> pages = 0; word = 0; slot = 0; goto life
        fi;
        held[AT(pages, word)] = held[AT(pages, word)] & ~slot;
        slab = pagemap[pages];
        assert(slab != NONE);
        assert(start[slab] == pages && (live[AT(slab, word)] & slot) != 0);
        live[AT(slab, word)] = live[AT(slab, word)] & ~slot;
        used[AT(pages, word)] = used[AT(pages, word)] & ~slot;
        remote_last[pages] = 0;
        pages = 0;
        word = 0;
        slot = 0
    };
    settle(slab, 0);
    slab = 0
}

// thread_end: pma_arena_rest, arena_abandon. Then perhaps arena_adopt, by another thread.
inline end_thread() {
    drain();
    if
    :: current != NONE && WRONG != CURRENT_STAYS -> collect(current); leave_current(1)
    :: else -> skip
    fi;
    atomic { adoption == 0 -> adoption = 1 };
    idle = 1;
    drain();
    adoption = 0;
    visit()
}

inline adopt() {
    atomic { adoption == 0 -> adoption = 1 };
    idle = 0;
    adoption = 0
}

// pma_thread_after_fork, in the child, which is alone yet: the slabs that are in the inbox get the new generation's
// mark. What has the old one is in no list, and will be pushed again.
inline after_fork() {
#if WRONG == FORK_FORGETS
    recounted = 1
#elif WRONG == FORK_CLEARS_LATE
    skip
#else
    list = inbox;
    do
    :: list != NONE -> queued[list] = generation; list = next[list]
    :: else -> list = 0; break
    od
#endif
}

// pma_arena_recount, at leisure: bits whose threads did not come to push them.
inline recount() {
#if WRONG == FORK_CLEARS_LATE
    inbox = NONE;
#endif
    word = 0;
    do
    :: atomic { word < RUNS && pagemap[word] == NONE -> word++ }
    :: atomic { word < RUNS && pagemap[word] != NONE -> slab = pagemap[word] };
#if WRONG == FORK_CLEARS_LATE
        queued[slab] = 0;
#endif
        collect(slab);
        settle(slab, 1);
        slab = 0;
        word++
    :: word == RUNS -> word = 0; break
    od;
    recounted = 1
}

proctype Owner() {
    byte pages, word, slot, slab, list, w, bits, mask, x;
    bit alive, room, goes_on;
life:
    do
    :: atomic { window != 0 && mallocs < MALLOCS -> take_slot() }
    :: atomic { current != NONE && window == 0 && mallocs < MALLOCS -> load_window() }
    :: current != NONE && is_queued(current) -> collect(current) // slab_collect
    :: current != NONE -> leave_current(1)
    :: current != NONE -> leave_current(0)
    :: atomic { current == NONE && sessions < SESSIONS -> take_attached() }
    :: current == NONE && sessions < SESSIONS -> make_slab()
    :: inbox != NONE -> drain()
#if OWNER_FREES
    :: free_own()
#endif
#if FORK
    :: atomic { !forked -> forked = 1; after_fork() }
    :: forked && !recounted -> recount()
#endif
#if ENDS
    :: end_thread();
        if
        :: goto sleep
        :: adopt()
        fi
#endif
    :: goto sleep
    od;
sleep:
    atomic { asleep = 1; check_rest() }
}

init {
    atomic { run Owner(); run Stranger(0); run Stranger(1) }
}
