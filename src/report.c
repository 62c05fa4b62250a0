// report.c - the heap's state as text.
#include <config.h>

#include "report.h"

#include "fatal.h"
#include "stats.h"

static void row_write(int descriptor, const char *name, size_t count, size_t bytes) {
    struct fatal_line line = { .length = 0 };
    pma_line_text(&line, name);
    while (line.length < 16) {
        pma_line_text(&line, " ");
    }
    pma_line_decimal(&line, count);
    while (line.length < 28) {
        pma_line_text(&line, " ");
    }
    pma_line_decimal(&line, bytes);
    pma_line_text(&line, "\n");
    pma_line_write(&line, descriptor);
}

void pma_report_text(int descriptor) {
    struct stats stats;
    struct fatal_line head = { .length = 0 };
    pma_stats_collect(&stats);
    pma_line_text(&head, "pamalloc        count       bytes\n");
    pma_line_write(&head, descriptor);
    row_write(descriptor, "slots in use", stats.slots_live, stats.slots_bytes);
    row_write(descriptor, "slabs", stats.slabs, stats.slab_bytes);
    row_write(descriptor, "large blocks", stats.large, stats.large_bytes);
    row_write(descriptor, "huge blocks", stats.huge, stats.huge_bytes);
    row_write(descriptor, "free, dirty", stats.dirty_runs, stats.dirty_bytes + stats.cached_bytes);
    row_write(descriptor, "free, clean", stats.clean_runs, stats.clean_bytes);
    row_write(descriptor, "metadata", stats.arenas, stats.meta);
    row_write(descriptor, "lock waits", stats.lock_waits, 0);
}

void pma_report_xml(FILE *stream) {
    struct stats stats;
    pma_stats_collect(&stats);
    size_t used = stats.slots_bytes + stats.large_bytes;
    size_t system = stats.committed + stats.huge_bytes;
    fprintf(stream, "<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n</sizes>\n");
    fprintf(stream, "<total type=\"fast\" count=\"0\" size=\"0\"/>\n");
    fprintf(stream, "<total type=\"rest\" count=\"%zu\" size=\"%zu\"/>\n",
            stats.dirty_runs + stats.clean_runs, stats.committed - size_min(stats.committed, used));
    fprintf(stream, "<system type=\"current\" size=\"%zu\"/>\n", system);
    fprintf(stream, "<system type=\"max\" size=\"%zu\"/>\n", system);
    fprintf(stream, "<aspace type=\"total\" size=\"%zu\"/>\n", system);
    fprintf(stream, "<aspace type=\"mprotect\" size=\"%zu\"/>\n", system);
    fprintf(stream, "</heap>\n");
    fprintf(stream, "<total type=\"fast\" count=\"0\" size=\"0\"/>\n");
    fprintf(stream, "<total type=\"rest\" count=\"%zu\" size=\"%zu\"/>\n",
            stats.dirty_runs + stats.clean_runs, stats.committed - size_min(stats.committed, used));
    fprintf(stream, "<total type=\"mmap\" count=\"%zu\" size=\"%zu\"/>\n", stats.huge,
            stats.huge_bytes);
    fprintf(stream, "<system type=\"current\" size=\"%zu\"/>\n", system);
    fprintf(stream, "<system type=\"max\" size=\"%zu\"/>\n", system);
    fprintf(stream, "<aspace type=\"total\" size=\"%zu\"/>\n", system);
    fprintf(stream, "<aspace type=\"mprotect\" size=\"%zu\"/>\n", system);
    fprintf(stream, "</malloc>\n");
}
