// Does every block that libc allocates for its caller come from this heap, and go back into it?
#include "entry.h"

#include <dirent.h>
#include <execinfo.h>
#include <glob.h>
#include <iconv.h>
#include <ifaddrs.h>
#include <locale.h>
#include <netdb.h>
#include <pthread.h>
#include <regex.h>
#include <search.h>
#include <wchar.h>
#include <wordexp.h>

// The heap knows the block: the usable size of a foreign one would end the process.
static void ours(void *block) {
    CHECK(block != NULL);
    CHECK(call.malloc_usable_size(block) > 0);
    free(hide(block));
}

static void strings(void) {
    char *text = NULL;
    wchar_t *wide = NULL;
    size_t room = 0;
    ours(strdup("a string that is copied"));
    ours(strndup("a string that is copied", 8));
    wide = wcsdup(L"a wide string");
    ours(wide);
    CHECK(asprintf(&text, "%d %s %2000s", 1, "formatted", "x") > 2000);
    ours(text);
    text = NULL;
    FILE *file = fopen("/proc/self/status", "r");
    REQUIRE(file != NULL);
    CHECK(getline(&text, &room, file) > 0);
    CHECK(getdelim(&text, &room, 0, file) > 0);
    ours(text);
    CHECK_EQ(fclose(file), 0);
    text = NULL;
    CHECK_EQ(sscanf("hello 123", "%ms", &text), 1);
    ours(text);
    ours(realpath("/proc/self/../self", NULL));
    ours(getcwd(NULL, 0));
    ours(get_current_dir_name());
}

static void streams(void) {
    char *text = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&text, &length);
    REQUIRE(memory != NULL);
    for (int i = 0; i < 10000; i++) {
        CHECK(fprintf(memory, "%d\n", i) > 0);
    }
    CHECK_EQ(fclose(memory), 0);
    CHECK(length > 40000);
    ours(text);
    wchar_t *wide = NULL;
    memory = open_wmemstream(&wide, &length);
    REQUIRE(memory != NULL);
    CHECK(fwprintf(memory, L"%ls", L"wide") > 0);
    CHECK_EQ(fclose(memory), 0);
    ours(wide);
    FILE *pipe = popen("echo through a pipe", "r");
    char line[64];
    CHECK(pipe != NULL && fgets(line, sizeof(line), pipe) != NULL);
    CHECK_EQ(pclose(pipe), 0);
}

static int any_name(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

static void folders(void) {
    struct dirent **names = NULL;
    int count = scandir("/", &names, any_name, alphasort);
    CHECK(count > 0);
    for (int i = 0; i < count; i++) {
        ours(names[i]);
    }
    ours(names);
    DIR *folder = opendir("/proc/self");
    CHECK(folder != NULL && readdir(folder) != NULL && closedir(folder) == 0);
    glob_t paths;
    CHECK_EQ(glob("/*", 0, NULL, &paths), 0);
    globfree(&paths);
    wordexp_t words;
    CHECK_EQ(wordexp("$HOME/x 'a b' c", &words, WRDE_NOCMD), 0);
    wordfree(&words);
}

static void languages(void) {
    CHECK(setlocale(LC_ALL, "C.UTF-8") != NULL);
    locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    CHECK(locale != (locale_t)0);
    locale_t copy = duplocale(locale);
    freelocale(locale);
    freelocale(copy);
    iconv_t conversion = iconv_open("UTF-16LE", "ISO-8859-1");
    if (conversion != (iconv_t)-1) {
        CHECK_EQ(iconv_close(conversion), 0);
    }
    regex_t regex;
    CHECK_EQ(regcomp(&regex, "^(a|b)*[[:alpha:]]+(x{2,5})$", REG_EXTENDED), 0);
    CHECK_EQ(regexec(&regex, "ababqqxxx", 0, NULL, 0), 0);
    regfree(&regex);
    CHECK(setlocale(LC_ALL, "C") != NULL);
}

static int by_text(const void *a, const void *b) {
    return strcmp((const char *)a, (const char *)b);
}

static void tables(void) {
    CHECK(hcreate(100) != 0);
    for (int i = 0; i < 100; i++) {
        struct entry entry = { NULL, NULL };
        CHECK(asprintf(&entry.key, "key %d", i) > 0);
        CHECK(hsearch(entry, ENTER) != NULL);
        // hdestroy frees no keys.
    }
    hdestroy();
    void *root = NULL;
    static const char *const words[] = { "one", "two", "three", "four", "five", "six" };
    for (size_t i = 0; i < 6; i++) {
        CHECK(tsearch(words[i], &root, by_text) != NULL);
    }
    for (size_t i = 0; i < 6; i++) {
        CHECK(tdelete(words[i], &root, by_text) != NULL);
    }
    CHECK_EQ(setenv("PMA_TEST_A_VARIABLE", "x", 1), 0);
    CHECK_EQ(setenv("PMA_TEST_A_VARIABLE", "a longer value than before", 1), 0);
    CHECK_EQ(unsetenv("PMA_TEST_A_VARIABLE"), 0);
    int numbers[5000];
    for (int i = 0; i < 5000; i++) {
        numbers[i] = -i;
    }
    qsort(numbers, 5000, sizeof(int), by_text);
}

static void names_of_the_net(void) {
    struct addrinfo *found = NULL;
    struct ifaddrs *interfaces = NULL;
    if (getaddrinfo("127.0.0.1", "80", NULL, &found) == 0) {
        freeaddrinfo(found);
    }
    if (getifaddrs(&interfaces) == 0) {
        freeifaddrs(interfaces);
    }
    (void)getservbyname("http", "tcp");
    void *frames[16];
    int depth = backtrace(frames, 16);
    char **symbols = backtrace_symbols(frames, depth);
    ours(symbols);
}

static void *use_thread_locals(void *unused) {
    static __thread char locals[4096];
    *(volatile char *)hide(locals) = 1;
    CHECK(dlerror() == NULL);
    CHECK(dlopen("there is no such library", RTLD_NOW) == NULL);
    CHECK(dlerror() != NULL);
    free(strdup("in a thread"));
    return unused;
}

// Thread stacks and thread-local blocks are libc's own use of the heap, on threads anew and reused.
static void threads(void) {
    pthread_t threads[64];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 64; i++) {
            REQUIRE(pthread_create(&threads[i], NULL, use_thread_locals, NULL) == 0);
        }
        for (int i = 0; i < 64; i++) {
            REQUIRE(pthread_join(threads[i], NULL) == 0);
        }
        void *library = dlopen("libm.so.6", RTLD_NOW);
        CHECK(library != NULL);
        CHECK_EQ(dlclose(library), 0);
    }
}

int main(void) {
    entry_begin(30);
    for (int i = 0; i < 3; i++) {
        strings();
        streams();
        folders();
        languages();
        tables();
        names_of_the_net();
        threads();
    }
    return test_end();
}
