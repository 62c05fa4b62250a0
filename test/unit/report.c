// report.c - the text and the XML say what the sums say, in a form that others can read.
#include <config.h>

#include "alloc.h"
#include "base.h"
#include "harness.h"
#include "malloc.h"
#include "report.h"
#include "stats.h"

#include <ctype.h>

static char text[65536];

// ---- text

static void text_take(void) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    pma_report_text(ends[1]);
    REQUIRE(close(ends[1]) == 0);
    size_t length = 0;
    for (ssize_t n; (n = read(ends[0], text + length, sizeof(text) - 1 - length)) > 0;) {
        length += (size_t)n;
    }
    text[length] = '\0';
    REQUIRE(close(ends[0]) == 0);
}

static void check_row(const char *name, size_t count, size_t bytes) {
    const char *line = strstr(text, name);
    size_t found_count = 0;
    size_t found_bytes = 0;
    REQUIRE(line != NULL && (line == text || line[-1] == '\n'));
    CHECK_EQ(sscanf(line + strlen(name), "%zu %zu", &found_count, &found_bytes), 2);
    CHECK_SAY(found_count == count, "%s: count %zu, not %zu", name, found_count, count);
    CHECK_SAY(found_bytes == bytes, "%s: bytes %zu, not %zu", name, found_bytes, bytes);
}

static void check_text(void) {
    struct stats stats;
    text_take();
    pma_stats_collect(&stats);
    check_row("slots in use", stats.slots_live, stats.slots_bytes);
    check_row("slabs", stats.slabs, stats.slab_bytes);
    check_row("large blocks", stats.large, stats.large_bytes);
    check_row("huge blocks", stats.huge, stats.huge_bytes);
    check_row("free, dirty", stats.dirty_runs, stats.dirty_bytes + stats.cached_bytes);
    check_row("free, clean", stats.clean_runs, stats.clean_bytes);
    check_row("metadata", stats.arenas, stats.meta);
    check_row("lock waits", stats.lock_waits, 0);
    // Every line has the columns of the first.
    size_t lines = 0;
    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
        REQUIRE(strchr(line, '\n') != NULL);
        CHECK(strchr(line, '\n') - line < 80);
        lines++;
    }
    CHECK_EQ(lines, 9);
}

// ---- XML

static void xml_take(void) {
    FILE *file = tmpfile();
    REQUIRE(file != NULL);
    pma_report_xml(file);
    REQUIRE(fflush(file) == 0 && !ferror(file));
    rewind(file);
    size_t length = fread(text, 1, sizeof(text) - 1, file);
    text[length] = '\0';
    REQUIRE(fclose(file) == 0);
}

// Elements, attributes and white space, of which our reports are made; no more of XML than that.
struct reader {
    const char *at;
    char open[16][16]; // names of the elements that are open
    size_t depth;
    size_t elements;
};

static void name_read(struct reader *reader, char name[16]) {
    size_t length = 0;
    while (isalpha((unsigned char)*reader->at)) {
        REQUIRE(length < 15);
        name[length++] = *reader->at++;
    }
    REQUIRE(length > 0);
    name[length] = '\0';
}

static void attributes_read(struct reader *reader) {
    char names[8][16];
    size_t count = 0;
    while (*reader->at == ' ') {
        reader->at++;
        REQUIRE(count < 8);
        name_read(reader, names[count]);
        for (size_t i = 0; i < count; i++) {
            CHECK(strcmp(names[i], names[count]) != 0);
        }
        count++;
        REQUIRE(reader->at[0] == '=' && reader->at[1] == '"');
        const char *end = strchr(reader->at + 2, '"');
        REQUIRE(end != NULL);
        for (const char *at = reader->at + 2; at < end; at++) {
            CHECK(*at != '<' && *at != '&' && *at != '\n');
        }
        reader->at = end + 1;
    }
}

static void tag_read(struct reader *reader) {
    char name[16];
    reader->at++;
    if (*reader->at == '/') {
        reader->at++;
        name_read(reader, name);
        REQUIRE(reader->depth > 0);
        CHECK(strcmp(reader->open[--reader->depth], name) == 0);
    } else {
        name_read(reader, name);
        attributes_read(reader);
        reader->elements++;
        if (*reader->at == '/') {
            reader->at++;
        } else {
            REQUIRE(reader->depth < 16);
            memcpy(reader->open[reader->depth++], name, sizeof(name));
        }
    }
    REQUIRE(*reader->at == '>');
    reader->at++;
}

static void check_well_formed(void) {
    struct reader reader = { .at = text };
    CHECK(strncmp(text, "<malloc version=\"1\">\n", 21) == 0);
    while (*reader.at != '\0') {
        if (*reader.at == '<') {
            // One root: it closes last.
            CHECK(reader.depth > 0 || reader.elements == 0 || reader.at[1] == '/');
            tag_read(&reader);
        } else {
            CHECK(*reader.at == '\n');
            reader.at++;
        }
    }
    CHECK_EQ(reader.depth, 0);
    CHECK(reader.elements > 10);
}

static size_t number_behind(const char *place, const char *attribute) {
    const char *found = strstr(place, attribute);
    REQUIRE(found != NULL);
    return strtoull(found + strlen(attribute), NULL, 10);
}

// The elements of the GNU C library's report, in its order.
static void check_elements(void) {
    static const char *const elements[] = {
        "<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n</sizes>\n",
        "<total type=\"fast\" count=\"0\" size=\"0\"/>\n",
        "<total type=\"rest\" count=\"",
        "<system type=\"current\" size=\"",
        "<system type=\"max\" size=\"",
        "<aspace type=\"total\" size=\"",
        "<aspace type=\"mprotect\" size=\"",
        "</heap>\n<total type=\"fast\" count=\"0\" size=\"0\"/>\n",
        "<total type=\"rest\" count=\"",
        "<total type=\"mmap\" count=\"",
        "<system type=\"current\" size=\"",
        "<system type=\"max\" size=\"",
        "<aspace type=\"total\" size=\"",
        "<aspace type=\"mprotect\" size=\"",
        "</malloc>\n",
    };
    const char *at = text;
    for (size_t i = 0; i < sizeof(elements) / sizeof(elements[0]); i++) {
        CHECK_SAY(strncmp(at, elements[i], strlen(elements[i])) == 0, "no %s here: %s", elements[i],
                  at);
        at += strlen(elements[i]);
        // The numbers up to the end of the line.
        if (at[-1] != '\n') {
            REQUIRE(strchr(at, '\n') != NULL);
            at = strchr(at, '\n') + 1;
        }
    }
    CHECK_EQ(*at, '\0');
}

// The last elements are those of the whole process; the one heap's are the same, without what has a
// mapping of its own.
static void check_xml(void) {
    struct stats stats;
    xml_take();
    pma_stats_collect(&stats);
    check_well_formed();
    check_elements();
    const char *whole = strstr(text, "</heap>");
    REQUIRE(whole != NULL);
    const char *mapped = strstr(whole, "<total type=\"mmap\"");
    const char *rest = strstr(whole, "<total type=\"rest\"");
    const char *system = strstr(whole, "<system type=\"current\"");
    REQUIRE(mapped != NULL && rest != NULL && system != NULL);
    CHECK_EQ(number_behind(mapped, " count=\""), stats.huge);
    CHECK_EQ(number_behind(mapped, " size=\""), stats.huge_bytes);
    CHECK_EQ(number_behind(rest, " count=\""), stats.dirty_runs + stats.clean_runs);
    CHECK_EQ(number_behind(rest, " size=\""),
             stats.committed - stats.slots_bytes - stats.large_bytes);
    CHECK_EQ(number_behind(system, " size=\""), stats.committed + stats.huge_bytes);
    const char *rest_of_heap = strstr(text, "<total type=\"rest\"");
    CHECK_EQ(number_behind(rest_of_heap, " count=\""), number_behind(rest, " count=\""));
    CHECK_EQ(number_behind(rest_of_heap, " size=\""), number_behind(rest, " size=\""));
}

int main(void) {
    test_begin(60);
    void *blocks[300];
    // The stream's buffer is the C library's, which has another malloc here.
    check_text();
    check_xml();
    for (size_t i = 0; i < 300; i++) {
        blocks[i] = pma_malloc(i < 290 ? i * 400 : (size_t)1 << 21);
        REQUIRE(blocks[i] != NULL);
    }
    check_text();
    check_xml();
    for (size_t i = 0; i < 300; i++) {
        pma_free(blocks[i]);
    }
    check_text();
    check_xml();
    // A stream that cannot be written to is left alone, and no signal comes of it.
    pma_report_text(-1);
    return test_end();
}
