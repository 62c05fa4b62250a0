// opens.so - a library that opens another by its name alone, which is found by this one's own path
// of search. pamalloc-inner.so is the other one.
#include <dlfcn.h>
#include <stddef.h>

__attribute__((visibility("default"))) int opens_by_name(const char *name);

int opens_by_name(const char *name) {
    return dlopen(name, RTLD_NOW | RTLD_LOCAL) != NULL;
}
