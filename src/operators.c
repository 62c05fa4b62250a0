// operators.c - the plain operators new and delete that the process has.
#include <config.h>

#include "operators.h"

const struct operators pma_operators = {
    PMA_NAME(_Znwm),
    PMA_NAME(_Znam),
    PMA_NAME(_ZnwmSt11align_val_t),
    PMA_NAME(_ZnamSt11align_val_t),
    PMA_NAME(_ZdlPv),
    PMA_NAME(_ZdaPv),
    PMA_NAME(_ZdlPvSt11align_val_t),
    PMA_NAME(_ZdaPvSt11align_val_t),
};
