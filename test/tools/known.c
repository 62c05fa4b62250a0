// known.c - a program whose calls are counted: what a tool says of it can be compared with what it
// did.
//
// Run by the scripts of test/tools, with the library preloaded.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS 1000

static void *volatile kept[BLOCKS];

// A name that stands in backtraces and profiles.
__attribute__((noinline)) void blocks_come_and_go(unsigned rounds) {
    for (unsigned round = 0; round < rounds; round++) {
        for (int i = 0; i < BLOCKS; i++) {
            kept[i] = malloc(64);
            memset(kept[i], 1, 64);
        }
        for (int i = 0; i < BLOCKS; i++) {
            free(kept[i]);
        }
    }
}

int main(int count, char **arguments) {
    unsigned rounds = count > 1 ? (unsigned)atoi(arguments[1]) : 1;
    blocks_come_and_go(rounds);
    // With a word more it leaves that many blocks live, or dies with a thousand of them.
    if (count > 2 && strcmp(arguments[2], "crash") == 0) {
        for (int i = 0; i < BLOCKS; i++) {
            kept[i] = malloc(64);
        }
        // Much that was used once and given back, some of it page by page.
        void *volatile large = malloc((size_t)64 << 20);
        memset(large, 1, (size_t)64 << 20);
        free(large);
        (void)raise(SIGSEGV);
    } else if (count > 2 && strcmp(arguments[2], "leak") == 0) {
        for (int i = 0; i < 7; i++) {
            kept[i] = malloc(4321);
        }
    } else if (count > 2 && strcmp(arguments[2], "twice") == 0) {
        kept[0] = malloc(64);
        free(kept[0]);
        free(kept[0]);
    }
    return puts("done") < 0;
}
