// Libraries that come and go: this one, its users, in their own ways of binding.
#include "life.h"

struct user {
    void *handle;
    char *(*copy)(const char *);
    void (*free)(char *);
    int (*work)(size_t);
};

static void *opened(void *handle) {
    if (handle == NULL) {
        say("%s\n", dlerror());
        _exit(1);
    }
    return handle;
}

static struct user user_of(void *handle) {
    struct user user = { opened(handle), NULL, NULL, NULL };
    user.copy = (char *(*)(const char *))(uintptr_t)dlsym(handle, "user_copy");
    user.free = (void (*)(char *))(uintptr_t)dlsym(handle, "user_free");
    user.work = (int (*)(size_t))(uintptr_t)dlsym(handle, "user_work");
    REQUIRE(user.copy != NULL && user.free != NULL && user.work != NULL);
    return user;
}

// Each side frees what the other one made.
static void cross_the_border(const struct user *user) {
    for (int i = 0; i < 1000; i++) {
        user->free(strdup("made by the host"));
        free(hide(user->copy("made by the module")));
    }
    CHECK(user->work(1000));
}

static void come_and_go(const char *name, int flags) {
    for (int i = 0; i < 30; i++) {
        struct user user = user_of(dlopen(life_module(name), flags));
        cross_the_border(&user);
        CHECK_EQ(dlclose(user.handle), 0);
    }
}

static void users_come_and_go(void) {
    come_and_go("user.so", RTLD_NOW | RTLD_LOCAL);
    come_and_go("plugin.so", RTLD_LAZY | RTLD_GLOBAL);
}

static void bound_deeply(void) {
    come_and_go("user.so", RTLD_NOW | RTLD_DEEPBIND);
    come_and_go("plugin.so", RTLD_LAZY | RTLD_LOCAL | RTLD_DEEPBIND);
}

// A name space has a libc of its own, and a heap of its own with the plugin.
static void in_other_name_spaces(void) {
    for (int i = 0; i < 20; i++) {
        const char *name = i < 2 ? "plugin.so" : "user.so";
        struct user user = user_of(dlmopen(LM_ID_NEWLM, life_module(name), RTLD_NOW));
        CHECK(user.work(1000));
        user.free(user.copy("within the name space"));
        CHECK_EQ(dlclose(user.handle), 0);
    }
}

static void open_the_library(const char *path) {
    void *handle = opened(dlopen(path, RTLD_NOW | RTLD_LOCAL));
    void *(*get)(size_t) = (void *(*)(size_t))(uintptr_t)dlsym(handle, "malloc");
    void (*give)(void *) = (void (*)(void *))(uintptr_t)dlsym(handle, "free");
    REQUIRE(get != NULL && give != NULL);
    for (size_t i = 0; i < 1000; i++) {
        void *block = hide(get(i * 100));
        CHECK(block != NULL);
        give(block);
    }
    CHECK_EQ(dlclose(handle), 0);
}

static void open_and_close(void) {
    const char *path = getenv("PAMALLOC_LIB");
    REQUIRE(path != NULL);
    for (int i = 0; i < 30; i++) {
        open_the_library(path);
        CHECK(work_run((uint64_t)i, 300, 1 << 20) == 0);
    }
}

static void without_preload(void *unused) {
    (void)unused;
    (void)unsetenv("LD_PRELOAD");
    life_restart("elsewhere");
}

// In a program that is on it already, and in one that is not, as far as this one can be such.
static void library_comes_and_goes(void) {
    open_and_close();
    life_child(without_preload, NULL, "a program on another heap");
}

// The loader takes a module's own path of search when the module calls dlopen, and tells of errors.
static void modules_open_from_their_own_path(void) {
    void *handle = opened(dlopen(life_module("opens.so"), RTLD_NOW));
    int (*opens)(const char *) = (int (*)(const char *))(uintptr_t)dlsym(handle, "opens_by_name");
    REQUIRE(opens != NULL);
    CHECK(opens("pamalloc-inner.so"));
    CHECK(dlopen("pamalloc-inner.so", RTLD_NOW | RTLD_NOLOAD) != NULL);
    CHECK(!opens("pamalloc-nowhere.so"));
    CHECK(dlerror() != NULL && dlerror() == NULL);
    CHECK(dlopen(NULL, RTLD_NOW) != NULL);
}

static const struct life_case cases[] = {
    { "users_come_and_go", users_come_and_go },
    { "bound_deeply", bound_deeply },
    { "in_other_name_spaces", in_other_name_spaces },
    { "library_comes_and_goes", library_comes_and_goes },
    { "modules_open_from_their_own_path", modules_open_from_their_own_path },
};

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "elsewhere") == 0) {
        test_begin(20);
        open_and_close();
        return test_end();
    }
    return life_main(count, arguments, cases, sizeof(cases) / sizeof(cases[0]));
}
