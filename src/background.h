// background.h - the thread that gives back what lies unused while the program makes no calls.
//
// Owns that thread: its start, its rounds, its sleep, its end. It exists only with the option
// background. It takes no arena and makes no call of malloc. It must not know the entry points.
//
// What it reaches: free runs, the cache of huge blocks, and arenas that no thread has. What a live
// thread holds in its arena, windows, empty current slabs and cached runs, is that thread's alone.
#ifndef PMA_BACKGROUND_H
#define PMA_BACKGROUND_H

#include "base.h"

// Starts the thread, now and in forked children; by the library's constructor if the option is set.
// It is called in the program's first thread, whose end by pthread_exit is the thread's end too:
// the process lives only for the program's own threads.
void pma_background_enable(void);

// Once a second by a thread that makes calls: a forked child has its thread started here.
void pma_background_tick(void);

// True while the thread is there, as far as this process knows.
bool pma_background_is_running(void);

#endif
