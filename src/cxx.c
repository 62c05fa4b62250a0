// cxx.c - operators new and delete.
#include <config.h>

#include "cxx.h"

#include "fatal.h"
#include "loader.h"
#include "malloc.h"
#include "operators.h"
#include "sized.h"
#include "tune.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>

const char pma_link_cxx = 1;
__attribute__((used)) static const char *const links[] = { &pma_link_alloc, &pma_link_malloc,
                                                           &pma_link_extra, &pma_link_loader };

// ---- the C++ library of the process, by the names of the Itanium C++ ABI

typedef void (*new_handler)(void);
typedef void (*function)(void);
#define WEAK(name) __asm__(name) __attribute__((weak))
#define GET_NEW_HANDLER "_ZSt15get_new_handlerv"
#define THROW_BAD_ALLOC "_ZSt17__throw_bad_allocv"
#define BEGIN_CATCH "__cxa_begin_catch"
#define END_CATCH "__cxa_end_catch"
extern new_handler get_new_handler(void) WEAK(GET_NEW_HANDLER);
extern void throw_bad_alloc(void) WEAK(THROW_BAD_ALLOC);
extern void *begin_catch(void *exception) WEAK(BEGIN_CATCH);
extern void end_catch(void) WEAK(END_CATCH);
#define ALLOCATE_EXCEPTION "__cxa_allocate_exception"
#define THROW_EXCEPTION "__cxa_throw"
#define BAD_ALLOC_TYPE "_ZTISt9bad_alloc"
#define BAD_ALLOC_TABLE "_ZTVSt9bad_alloc"
#define BAD_ALLOC_DESTROY "_ZNSt9bad_allocD1Ev"
// Two of these are objects; only their addresses matter here.
extern void allocate_exception(void) WEAK(ALLOCATE_EXCEPTION);
extern void throw_exception(void) WEAK(THROW_EXCEPTION);
extern void bad_alloc_type(void) WEAK(BAD_ALLOC_TYPE);
extern void bad_alloc_table(void) WEAK(BAD_ALLOC_TABLE);
extern void bad_alloc_destroy(void) WEAK(BAD_ALLOC_DESTROY);

// libtool tells that this is the shared library. The archive is a part of one program, and has its
// C++ library or none.
#ifdef PIC
extern int dladdr(const void *address, Dl_info *info) __attribute__((weak));
extern void *dlopen(const char *file, int flags) __attribute__((weak));
extern void *dlsym(void *handle, const char *name) __attribute__((weak));
extern int dlclose(void *handle) __attribute__((weak));

// A program in C may load a C++ library late, below a module and for it alone: then it is found
// from the module that called, and nowhere else. Only a request that failed comes here, and
// throwing takes the loader's lock as well.
static function find_late(const char *name, const void *caller) {
    Dl_info info;
    if (dladdr == NULL || dlopen == NULL || dlsym == NULL || dlclose == NULL ||
        dladdr(caller, &info) == 0) {
        return NULL;
    }
    void *handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL) {
        return NULL;
    }
    function found = (function)(uintptr_t)dlsym(handle, name);
    dlclose(handle);
    return found;
}
#else
static function find_late(const char *name, const void *caller) {
    (void)name;
    (void)caller;
    return NULL;
}
#endif

static function find(const char *name, function linked, const void *caller) {
    return linked != NULL ? linked : find_late(name, caller);
}

// Where a static C++ library left out the function that throws bad_alloc, it is thrown by hand. An
// object is a pointer to its table, behind the table's first two entries.
static void throw_by_hand(const void *caller) {
    function allocate = find(ALLOCATE_EXCEPTION, allocate_exception, caller);
    function thrower = find(THROW_EXCEPTION, throw_exception, caller);
    function type = find(BAD_ALLOC_TYPE, bad_alloc_type, caller);
    function table = find(BAD_ALLOC_TABLE, bad_alloc_table, caller);
    function destroy = find(BAD_ALLOC_DESTROY, bad_alloc_destroy, caller);
    if (allocate != NULL && thrower != NULL && type != NULL && table != NULL) {
        uintptr_t *exception = ((void *(*)(size_t))allocate)(sizeof(uintptr_t));
        *exception = (uintptr_t)table + 2 * sizeof(void *);
        ((void (*)(void *, function, function))thrower)(exception, type, destroy);
    }
}

static _Noreturn void throw(size_t size, const void *caller) {
    function thrower = find(THROW_BAD_ALLOC, throw_bad_alloc, caller);
    if (thrower != NULL) {
        thrower();
    }
    throw_by_hand(caller);
    pma_fatal("operator new", "no memory, and no C++ library to throw",
              (struct fatal_block){ NULL, size, -1 });
}

// ---- catching, which C cannot

// The unwinder asks the personality of each frame whether exceptions end there. That of
// call_returns answers yes to all but a thread's cancellation, and goes on there by longjmp.
struct catcher {
    jmp_buf place;
    void *exception;
};

static __thread struct catcher *catcher;

enum { SEARCH = 1, HANDLER_FRAME = 4, FORCED = 8, HANDLER_FOUND = 6, CONTINUE = 8 };

__attribute__((used)) int pma_cxx_personality(int version, int actions, uint64_t class,
                                              void *exception, const void *context) {
    (void)class;
    (void)context;
    if (version != 1 || (actions & FORCED) != 0) {
        return CONTINUE;
    }
    if ((actions & SEARCH) != 0) {
        return HANDLER_FOUND;
    }
    if ((actions & HANDLER_FRAME) != 0) {
        catcher->exception = exception;
        longjmp(catcher->place, 1);
    }
    return CONTINUE;
}

// Makes a call and says whether it came back, or threw.
__attribute__((noinline)) PMA_COLD static bool call_returns(void (*call)(void *), void *argument,
                                                            const void *caller) {
    struct catcher here;
    struct catcher *volatile outer = catcher;
    if (_setjmp(here.place) == 0) {
        catcher = &here;
        __asm__ volatile(".cfi_personality 0x1b, pma_cxx_personality");
        call(argument);
        catcher = outer;
        return true;
    }
    catcher = outer;
    void *(*begin)(void *) = (void *(*)(void *))find(BEGIN_CATCH, (function)begin_catch, caller);
    function end = find(END_CATCH, end_catch, caller);
    if (begin != NULL && end != NULL) {
        begin(here.exception);
        end();
    }
    return false;
}

static void handler_call(void *argument) {
    (*(new_handler *)argument)();
}

// ---- operators of others

// A program may replace some of the operators, as a rule the plain ones alone, and count on the
// others to lead there, as the C++ library's do: what its new made must not be freed here because
// its size was told. So each asks whether the name that it stands on is still ours in this process.
// Ours go by hidden names here, since the public ones lead to the process's.
#define STRING(name) #name
#define AS(name) STRING(name)
#define OWN(own, name, result, parameters) \
    result own parameters __attribute__((alias(AS(name)), visibility("hidden")))
OWN(pma_own_new, PMA_NAME(_Znwm), void *, (size_t size));
OWN(pma_own_new_array, PMA_NAME(_Znam), void *, (size_t size));
OWN(pma_own_new_aligned, PMA_NAME(_ZnwmSt11align_val_t), void *, (size_t size, size_t alignment));
OWN(pma_own_new_array_aligned, PMA_NAME(_ZnamSt11align_val_t), void *,
    (size_t size, size_t alignment));
OWN(pma_own_delete, PMA_NAME(_ZdlPv), void, (void *block));
OWN(pma_own_delete_array, PMA_NAME(_ZdaPv), void, (void *block));
OWN(pma_own_delete_aligned, PMA_NAME(_ZdlPvSt11align_val_t), void, (void *block, size_t alignment));
OWN(pma_own_delete_array_aligned, PMA_NAME(_ZdaPvSt11align_val_t), void,
    (void *block, size_t alignment));

#define IS_OURS(name) likely(pma_operators.name == pma_own_##name)

// ---- new

static void *take(size_t size, size_t alignment) {
    return alignment <= PMA_SLOT_MIN ? PMA_NAME(malloc)(size) : pma_alloc_aligned(alignment, size);
}

// The new-handler makes room, or throws, or gives up by not being there.
static void *retry(size_t size, size_t alignment, bool nothrow, const void *caller) {
    void *block = NULL;
    new_handler (*get)(void) =
        (new_handler(*)(void))find(GET_NEW_HANDLER, (function)get_new_handler, caller);
    while (block == NULL && get != NULL) {
        new_handler handler = get();
        if (handler == NULL) {
            break;
        }
        if (!nothrow) {
            handler();
        } else if (!call_returns(handler_call, &handler, caller)) {
            break;
        }
        block = take(size, alignment);
    }
    return block;
}

PMA_COLD static void *retry_or_throw(size_t size, size_t alignment, const void *caller) {
    // No room helps an alignment that is none: the C++ library's own operators do not ask either.
    void *block = is_power_of_two(alignment) ? retry(size, alignment, false, caller) : NULL;
    if (block != NULL) {
        return block;
    }
    throw(size, caller);
}

PMA_COLD static void *retry_or_give_up(size_t size, size_t alignment, const void *caller) {
    return is_power_of_two(alignment) ? retry(size, alignment, true, caller) : NULL;
}

PMA_INLINE void *new_throwing(size_t size, size_t alignment) {
    void *block = is_power_of_two(alignment) ? take(size, alignment) : NULL;
    return likely(block != NULL) ? block
                                 : retry_or_throw(size, alignment, __builtin_return_address(0));
}

PMA_INLINE void *new_nothrow(size_t size, size_t alignment) {
    void *block = is_power_of_two(alignment) ? take(size, alignment) : NULL;
    return likely(block != NULL) ? block
                                 : retry_or_give_up(size, alignment, __builtin_return_address(0));
}

// What a replaced operator is asked for by one that must not throw.
struct request {
    void *(*plain)(size_t size);
    void *(*aligned)(size_t size, size_t alignment);
    size_t size;
    size_t alignment;
    void *block;
};

static void request_make(void *argument) {
    struct request *request = argument;
    request->block = request->plain != NULL ? request->plain(request->size)
                                            : request->aligned(request->size, request->alignment);
}

PMA_COLD static void *request_quietly(struct request request, const void *caller) {
    return call_returns(request_make, &request, caller) ? request.block : NULL;
}

#define NEW_IS_OURS IS_OURS(new)
#define NEW_ARRAY_IS_OURS (NEW_IS_OURS && IS_OURS(new_array))
#define NEW_ALIGNED_IS_OURS IS_OURS(new_aligned)
#define NEW_ARRAY_ALIGNED_IS_OURS (NEW_ALIGNED_IS_OURS && IS_OURS(new_array_aligned))

void *PMA_NAME(_Znwm)(size_t size) {
    return new_throwing(size, PMA_SLOT_MIN);
}

void *PMA_NAME(_Znam)(size_t size) {
    return NEW_IS_OURS ? new_throwing(size, PMA_SLOT_MIN) : pma_operators.new(size);
}

void *PMA_NAME(_ZnwmSt11align_val_t)(size_t size, size_t alignment) {
    return new_throwing(size, alignment);
}

void *PMA_NAME(_ZnamSt11align_val_t)(size_t size, size_t alignment) {
    return NEW_ALIGNED_IS_OURS ? new_throwing(size, alignment)
                               : pma_operators.new_aligned(size, alignment);
}

void *PMA_NAME(_ZnwmRKSt9nothrow_t)(size_t size, const struct nothrow *nothrow) {
    (void)nothrow;
    if (!NEW_IS_OURS) {
        return request_quietly((struct request){ .plain = pma_operators.new, .size = size },
                               __builtin_return_address(0));
    }
    return new_nothrow(size, PMA_SLOT_MIN);
}

void *PMA_NAME(_ZnamRKSt9nothrow_t)(size_t size, const struct nothrow *nothrow) {
    (void)nothrow;
    if (!NEW_ARRAY_IS_OURS) {
        return request_quietly((struct request){ .plain = pma_operators.new_array, .size = size },
                               __builtin_return_address(0));
    }
    return new_nothrow(size, PMA_SLOT_MIN);
}

void *PMA_NAME(_ZnwmSt11align_val_tRKSt9nothrow_t)(size_t size, size_t alignment,
                                                   const struct nothrow *nothrow) {
    (void)nothrow;
    if (!NEW_ALIGNED_IS_OURS) {
        return request_quietly((struct request){ .aligned = pma_operators.new_aligned,
                                                 .size = size,
                                                 .alignment = alignment },
                               __builtin_return_address(0));
    }
    return new_nothrow(size, alignment);
}

void *PMA_NAME(_ZnamSt11align_val_tRKSt9nothrow_t)(size_t size, size_t alignment,
                                                   const struct nothrow *nothrow) {
    (void)nothrow;
    if (!NEW_ARRAY_ALIGNED_IS_OURS) {
        return request_quietly((struct request){ .aligned = pma_operators.new_array_aligned,
                                                 .size = size,
                                                 .alignment = alignment },
                               __builtin_return_address(0));
    }
    return new_nothrow(size, alignment);
}

// ---- delete: the block's own descriptor knows its size and alignment, and the hints are looked at
// on request only

#define DELETE_IS_OURS IS_OURS(delete)
#define DELETE_ARRAY_IS_OURS (DELETE_IS_OURS && IS_OURS(delete_array))
#define DELETE_ALIGNED_IS_OURS IS_OURS(delete_aligned)
#define DELETE_ARRAY_ALIGNED_IS_OURS (DELETE_ALIGNED_IS_OURS && IS_OURS(delete_array_aligned))

void PMA_NAME(_ZdlPv)(void *block) {
    pma_alloc_free("operator delete", block);
}

void PMA_NAME(_ZdaPv)(void *block) {
    if (!DELETE_IS_OURS) {
        pma_operators.delete(block);
        return;
    }
    pma_alloc_free("operator delete[]", block);
}

void PMA_NAME(_ZdlPvm)(void *block, size_t size) {
    if (!DELETE_IS_OURS) {
        pma_operators.delete(block);
        return;
    }
    sized_check("operator delete", block, PMA_SLOT_MIN, size);
    pma_alloc_free("operator delete", block);
}

void PMA_NAME(_ZdaPvm)(void *block, size_t size) {
    if (!DELETE_ARRAY_IS_OURS) {
        pma_operators.delete_array(block);
        return;
    }
    sized_check("operator delete[]", block, PMA_SLOT_MIN, size);
    pma_alloc_free("operator delete[]", block);
}

void PMA_NAME(_ZdlPvRKSt9nothrow_t)(void *block, const struct nothrow *nothrow) {
    (void)nothrow;
    if (!DELETE_IS_OURS) {
        pma_operators.delete(block);
        return;
    }
    pma_alloc_free("operator delete", block);
}

void PMA_NAME(_ZdaPvRKSt9nothrow_t)(void *block, const struct nothrow *nothrow) {
    (void)nothrow;
    if (!DELETE_ARRAY_IS_OURS) {
        pma_operators.delete_array(block);
        return;
    }
    pma_alloc_free("operator delete[]", block);
}

void PMA_NAME(_ZdlPvSt11align_val_t)(void *block, size_t alignment) {
    (void)alignment;
    pma_alloc_free("operator delete", block);
}

void PMA_NAME(_ZdaPvSt11align_val_t)(void *block, size_t alignment) {
    if (!DELETE_ALIGNED_IS_OURS) {
        pma_operators.delete_aligned(block, alignment);
        return;
    }
    pma_alloc_free("operator delete[]", block);
}

void PMA_NAME(_ZdlPvSt11align_val_tRKSt9nothrow_t)(void *block, size_t alignment,
                                                   const struct nothrow *nothrow) {
    (void)nothrow;
    if (!DELETE_ALIGNED_IS_OURS) {
        pma_operators.delete_aligned(block, alignment);
        return;
    }
    pma_alloc_free("operator delete", block);
}

void PMA_NAME(_ZdaPvSt11align_val_tRKSt9nothrow_t)(void *block, size_t alignment,
                                                   const struct nothrow *nothrow) {
    (void)nothrow;
    if (!DELETE_ARRAY_ALIGNED_IS_OURS) {
        pma_operators.delete_array_aligned(block, alignment);
        return;
    }
    pma_alloc_free("operator delete[]", block);
}

void PMA_NAME(_ZdlPvmSt11align_val_t)(void *block, size_t size, size_t alignment) {
    if (!DELETE_ALIGNED_IS_OURS) {
        pma_operators.delete_aligned(block, alignment);
        return;
    }
    sized_check("operator delete", block, alignment, size);
    pma_alloc_free("operator delete", block);
}

void PMA_NAME(_ZdaPvmSt11align_val_t)(void *block, size_t size, size_t alignment) {
    if (!DELETE_ARRAY_ALIGNED_IS_OURS) {
        pma_operators.delete_array_aligned(block, alignment);
        return;
    }
    sized_check("operator delete[]", block, alignment, size);
    pma_alloc_free("operator delete[]", block);
}
