// What does each operator new answer to each size and alignment, with memory and without, and does
// each operator delete take what comes of it?
#include "conformance.h"

#include <new>

namespace {

// A throwing form has no block where it throws.
template <typename Get> void *caught(Get get) {
    try {
        return hide(get());
    } catch (const std::bad_alloc &) {
        return nullptr;
    }
}

#define OPERATOR(name, expression) \
    void *name(size_t alignment, size_t size, int *code) { \
        const std::align_val_t aligned{ alignment }; \
        (void)aligned; \
        *code = 0; \
        return caught([=] { return expression; }); \
    }

OPERATOR(one, operator new(size))
OPERATOR(array, operator new[](size))
OPERATOR(one_nothrow, operator new(size, std::nothrow))
OPERATOR(array_nothrow, operator new[](size, std::nothrow))
OPERATOR(one_aligned, operator new(size, aligned))
OPERATOR(array_aligned, operator new[](size, aligned))
OPERATOR(one_aligned_nothrow, operator new(size, aligned, std::nothrow))
OPERATOR(array_aligned_nothrow, operator new[](size, aligned, std::nothrow))

const entry_point unaligned_forms[] = {
    { "new", RULE_NONE, false, one },
    { "new[]", RULE_NONE, false, array },
    { "new(nothrow)", RULE_NONE, false, one_nothrow },
    { "new[](nothrow)", RULE_NONE, false, array_nothrow },
};

const entry_point aligned_forms[] = {
    { "new(align)", RULE_NEW, false, one_aligned },
    { "new[](align)", RULE_NEW, false, array_aligned },
    { "new(align, nothrow)", RULE_NEW, false, one_aligned_nothrow },
    { "new[](align, nothrow)", RULE_NEW, false, array_aligned_nothrow },
};

#define DELETE(name, expression) \
    void name(void *block, size_t size, size_t alignment) { \
        const std::align_val_t aligned{ alignment }; \
        (void)size; \
        (void)aligned; \
        expression; \
    }

DELETE(delete_one, operator delete(block))
DELETE(delete_array, operator delete[](block))
DELETE(delete_one_sized, operator delete(block, size))
DELETE(delete_array_sized, operator delete[](block, size))
DELETE(delete_one_nothrow, operator delete(block, std::nothrow))
DELETE(delete_array_nothrow, operator delete[](block, std::nothrow))
DELETE(delete_one_aligned, operator delete(block, aligned))
DELETE(delete_array_aligned, operator delete[](block, aligned))
DELETE(delete_one_aligned_sized, operator delete(block, size, aligned))
DELETE(delete_array_aligned_sized, operator delete[](block, size, aligned))
DELETE(delete_one_aligned_nothrow, operator delete(block, aligned, std::nothrow))
DELETE(delete_array_aligned_nothrow, operator delete[](block, aligned, std::nothrow))

const giver givers[] = {
    { "delete", delete_one },
    { "delete[]", delete_array },
    { "delete(size)", delete_one_sized },
    { "delete[](size)", delete_array_sized },
    { "delete(nothrow)", delete_one_nothrow },
    { "delete[](nothrow)", delete_array_nothrow },
    { "delete(align)", delete_one_aligned },
    { "delete[](align)", delete_array_aligned },
    { "delete(size, align)", delete_one_aligned_sized },
    { "delete[](size, align)", delete_array_aligned_sized },
    { "delete(align, nothrow)", delete_one_aligned_nothrow },
    { "delete[](align, nothrow)", delete_array_aligned_nothrow },
};

} // namespace

int main() {
    static const family without_alignment = { unaligned_forms, 4, givers, 12 };
    static const family with_alignment = { aligned_forms, 4, givers, 12 };
    entry_begin(120);
    judge_family(&without_alignment);
    judge_family(&with_alignment);
    return test_end();
}
