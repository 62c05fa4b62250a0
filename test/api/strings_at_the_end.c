// May libc's vector code read as it does at the very end of a block, at every size?
#include "entry.h"

#include <regex.h>
#include <wchar.h>

// The string's last byte is the block's last usable one: a read that leaves the mapping faults.
static void string_functions(size_t size) {
    char *block = (char *)call.malloc(size);
    char *copy = (char *)call.malloc(size);
    REQUIRE(block != NULL && copy != NULL);
    memset(block, 'a', size - 1);
    block[size - 1] = 0;
    for (size_t length = 0; length < size && length < 70; length++) {
        const char *text = block + size - 1 - length;
        CHECK(strlen((const char *)hide((void *)(uintptr_t)text)) == length);
        CHECK(strnlen(text, length + 1) == length);
        CHECK(memchr(text, 0, length + 1) == text + length);
        CHECK(memrchr(text, 'b', length + 1) == NULL);
        CHECK(rawmemchr(text, 0) == text + length);
        CHECK(strchr(text, 'b') == NULL);
        CHECK(strrchr(text, 'b') == NULL);
        CHECK(strstr(text, "ab") == NULL);
        CHECK(strcasestr(text, "AB") == NULL);
        CHECK(strcspn(text, "b") == length);
        CHECK(strspn(text, "a") == length);
        char *end = copy + size - 1 - length;
        CHECK(strcpy(end, text) == end);
        CHECK(stpcpy(end, text) == end + length);
        CHECK(strcmp(end, text) == 0);
        CHECK(strncmp(end, text, length + 1) == 0);
        CHECK(strcasecmp(end, text) == 0);
        CHECK(memcmp(end, text, length + 1) == 0);
    }
    call.free(block);
    call.free(copy);
}

static void wide_and_formatted(size_t size) {
    size_t letters = size / sizeof(wchar_t);
    wchar_t *wide = (wchar_t *)call.malloc(letters * sizeof(wchar_t));
    char *text = (char *)call.malloc(size);
    char line[80];
    REQUIRE(wide != NULL && text != NULL);
    for (size_t i = 0; i < letters; i++) {
        wide[i] = i + 1 < letters ? L'w' : 0;
    }
    CHECK(wcslen((const wchar_t *)hide(wide)) == letters - 1);
    CHECK(wcschr(wide, L'x') == NULL);
    memset(text, 'b', size - 1);
    text[size - 1] = 0;
    CHECK(snprintf(line, sizeof(line), "%s", text + size - 10) == 9);
    CHECK(snprintf(line, sizeof(line), "%.9s", text + size - 10) == 9);
    regex_t regex;
    REQUIRE(regcomp(&regex, "bb$", REG_EXTENDED) == 0);
    CHECK_EQ(regexec(&regex, text + size - 10, 0, NULL, 0), 0);
    regfree(&regex);
    call.free(wide);
    call.free(text);
}

int main(void) {
    entry_begin(30);
    for (size_t pages = 1; pages <= 300; pages += pages < 20 ? 1 : 40) {
        string_functions(pages * page);
        string_functions(pages * page - 8);
        wide_and_formatted(pages * page);
    }
    for (size_t size = 16; size < 3000; size += 16) {
        string_functions(size);
        wide_and_formatted(size);
    }
    return test_end();
}
