// extra.c - the GNU C library's extras: statistics, tuning, giving back.
#include <config.h>

#include "extra.h"

#include "init.h"
#include "malloc.h"
#include "options.h"
#include "report.h"
#include "stats.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

const char pma_link_extra = 1;
__attribute__((used)) static const char *const links[] = { &pma_link_alloc, &pma_link_malloc,
                                                           &pma_link_cxx };

int PMA_NAME(malloc_trim)(size_t pad) {
    (void)pad;
    return pma_alloc_trim();
}

void PMA_NAME(malloc_stats)(void) {
    init_ensure();
    pma_report_text(STDERR_FILENO);
}

// Behind the program's own destructors and what it registered with atexit.
__attribute__((destructor)) static void report_at_end(void) {
    if (pma_options.stats != 0) {
        pma_report_text(STDERR_FILENO);
    }
}

struct pma_mallinfo2 PMA_NAME(mallinfo2)(void) {
    struct stats stats;
    init_ensure();
    pma_stats_collect(&stats);
    size_t used = stats.slots_bytes + stats.large_bytes;
    return (struct pma_mallinfo2){
        .arena = stats.committed,
        .ordblks = stats.dirty_runs + stats.clean_runs,
        .hblks = stats.huge,
        .hblkhd = stats.huge_bytes,
        .uordblks = used,
        .fordblks = stats.committed - size_min(stats.committed, used),
        .keepcost = stats.dirty_bytes + stats.cached_bytes,
    };
}

static int saturate(size_t number) {
    return number > INT_MAX ? INT_MAX : (int)number;
}

struct pma_mallinfo PMA_NAME(mallinfo)(void) {
    struct pma_mallinfo2 info = PMA_NAME(mallinfo2)();
    return (struct pma_mallinfo){
        .arena = saturate(info.arena),
        .ordblks = saturate(info.ordblks),
        .hblks = saturate(info.hblks),
        .hblkhd = saturate(info.hblkhd),
        .uordblks = saturate(info.uordblks),
        .fordblks = saturate(info.fordblks),
        .keepcost = saturate(info.keepcost),
    };
}

// The C library's parameters are numbered from -8 to 1 (M_ARENA_MAX to M_MXFAST). They steer
// mechanisms that do not exist here: accepted and ignored, as programs take 0 for a failure.
int PMA_NAME(mallopt)(int parameter, int value) {
    (void)value;
    return parameter >= -8 && parameter <= 1;
}

int PMA_NAME(malloc_info)(int options, FILE *stream) {
    if (options != 0) {
        return EINVAL;
    }
    init_ensure();
    pma_report_xml(stream);
    return 0;
}

const char *PMA_NAME(pamalloc_version)(void) {
    return PACKAGE_VERSION;
}
