// operators.c - where nobody brings operators, the table leads to ours.
#include <config.h>

#include "base.h"
#include "cxx.h"
#include "harness.h"
#include "operators.h"
#include "tune.h"

static void check_table(void) {
    CHECK(pma_operators.new == pma__Znwm &&pma_operators.delete == pma__ZdlPv);
    CHECK(pma_operators.new_array == pma__Znam && pma_operators.delete_array == pma__ZdaPv);
    CHECK(pma_operators.new_aligned != pma_operators.new_array_aligned);
    CHECK(pma_operators.delete_aligned != pma_operators.delete_array_aligned);
}

// Each pair works.
static void check_pairs(void) {
    void *block = pma_operators.new(100);
    CHECK(block != NULL);
    pma_operators.delete(block);
    block = pma_operators.new_array(100);
    CHECK(block != NULL);
    pma_operators.delete_array(block);
    block = pma_operators.new_aligned(100, 256);
    CHECK_EQ((uintptr_t)block % 256, 0);
    pma_operators.delete_aligned(block, 256);
    block = pma_operators.new_array_aligned(100, 1024);
    CHECK_EQ((uintptr_t)block % 1024, 0);
    pma_operators.delete_array_aligned(block, 1024);
}

int main(void) {
    test_begin(20);
    check_table();
    check_pairs();
    return test_end();
}
