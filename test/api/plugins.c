// Do libraries that bring this heap along, or are opened in their own ways, live in one process
// with their host: blocks that cross the border, RTLD_DEEPBIND, namespaces, little static TLS?
//
// Folders with the modules come as arguments: plugins WORK_FOLDER MODULES_FOLDER [plugin-only]
#include "../harness.h"

#include <limits.h>

static const char *modules;
static const char *folder;

struct user {
    void *handle;
    char *(*copy)(const char *);
    void (*free)(char *);
    int (*work)(size_t);
};

static struct user find_functions(void *handle) {
    struct user user = { handle, NULL, NULL, NULL };
    user.copy = (char *(*)(const char *))(uintptr_t)dlsym(handle, "user_copy");
    user.free = (void (*)(char *))(uintptr_t)dlsym(handle, "user_free");
    user.work = (int (*)(size_t))(uintptr_t)dlsym(handle, "user_work");
    REQUIRE(user.copy != NULL && user.free != NULL && user.work != NULL);
    return user;
}

static struct user open_user(const char *name, int flags) {
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s", modules, name);
    void *handle = dlopen(path, flags);
    if (handle == NULL) {
        say("%s\n", dlerror());
        REQUIRE(handle != NULL);
    }
    return find_functions(handle);
}

// Each side frees what the other one made.
static void cross_the_border(const struct user *user) {
    for (int i = 0; i < 1000; i++) {
        user->free(strdup("made by the host, freed by the plugin"));
        free(hide(user->copy("made by the plugin, freed by the host")));
        char *text = user->copy("grown by the host");
        text = (char *)hide(realloc(text, 100000));
        CHECK(text != NULL && strcmp(text, "grown by the host") == 0);
        user->free(text);
    }
    CHECK(user->work(1000));
}

static void open_and_close(const char *name, int flags) {
    for (int i = 0; i < 20; i++) {
        struct user user = open_user(name, flags);
        cross_the_border(&user);
        CHECK_EQ(dlclose(user.handle), 0);
    }
}

// A namespace has a libc and, with the plugin, a heap of its own: nothing crosses this border.
static void other_namespaces(const char *name, int times) {
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s", modules, name);
    for (int i = 0; i < times; i++) {
        void *handle = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
        if (handle == NULL) {
            say("%s\n", dlerror());
            REQUIRE(handle != NULL);
        }
        struct user user = find_functions(handle);
        CHECK(user.work(1000));
        user.free(user.copy("within the namespace"));
        CHECK_EQ(dlclose(handle), 0);
    }
}

static void copy_file(const char *from, const char *to) {
    static char bytes[1 << 16];
    int source = open(from, O_RDONLY | O_CLOEXEC);
    int target = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    REQUIRE(source >= 0 && target >= 0);
    for (ssize_t n; (n = read(source, bytes, sizeof(bytes))) > 0;) {
        REQUIRE(write(target, bytes, (size_t)n) == n);
    }
    (void)close(source);
    (void)close(target);
}

// Thirty libraries use up most of the reserve of static TLS before the plugin comes.
static void little_static_tls_is_left(void) {
    char from[PATH_MAX];
    char to[PATH_MAX];
    (void)snprintf(from, sizeof(from), "%s/user.so", modules);
    for (int i = 0; i < 30; i++) {
        (void)snprintf(to, sizeof(to), "%s/user-%d-%d.so", folder, (int)getpid(), i);
        copy_file(from, to);
        void *handle = dlopen(to, RTLD_NOW | RTLD_LOCAL);
        if (handle == NULL) {
            say("library %d: %s\n", i, dlerror());
            REQUIRE(handle != NULL);
        }
        (void)unlink(to);
    }
    struct user user = open_user("plugin.so", RTLD_NOW | RTLD_LOCAL);
    cross_the_border(&user);
}

int main(int count, char **arguments) {
    REQUIRE(count >= 3);
    folder = arguments[1];
    modules = arguments[2];
    if (count > 3) {
        // The host is on libc's heap; only the plugin names the library.
        test_begin(30);
        little_static_tls_is_left();
        open_and_close("plugin.so", RTLD_NOW | RTLD_LOCAL);
        open_and_close("plugin.so", RTLD_LAZY | RTLD_GLOBAL);
    } else {
        api_begin(30);
        open_and_close("user.so", RTLD_NOW | RTLD_LOCAL);
        open_and_close("plugin.so", RTLD_NOW | RTLD_GLOBAL);
        // Deep binding would look into the library's own dependencies first, and find libc's
        // malloc.
        open_and_close("user.so", RTLD_NOW | RTLD_DEEPBIND);
        open_and_close("plugin.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
        other_namespaces("user.so", 50);
        other_namespaces("plugin.so", 2);
    }
    return test_end();
}
