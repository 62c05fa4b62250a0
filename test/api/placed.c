// placed [wrong] - tells where its blocks lie, as distances from the first one; with an argument it
// then frees a block twice. For scripts that compare runs.
#include "../harness.h"

int main(int count, char **arguments) {
    char *blocks[64];
    (void)arguments;
    for (size_t i = 0; i < 64; i++) {
        blocks[i] = (char *)hide(malloc(i % 2 == 0 ? 48 : 41000));
        REQUIRE(blocks[i] != NULL);
        printf("%td ", i % 2 == 0 ? blocks[i] - blocks[0] : blocks[i] - blocks[1]);
    }
    printf("\n");
    (void)fflush(stdout);
    if (count > 1) {
        free(hide(blocks[0]));
        free(hide(blocks[0]));
    }
    return 0;
}
