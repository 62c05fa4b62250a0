# PMA_CFLAG(VARIABLE, FLAG): appends FLAG to VARIABLE if the compiler takes it without a word.
# PMA_LDFLAG(VARIABLE, FLAG): the same for a flag of the link.
#
# The user's CFLAGS and LDFLAGS are put back: a flag of ours never gets into them. -Werror is added for the test, since
# some compilers only warn of flags that they do not know. FLAG may be several that make sense only together.

AC_DEFUN([PMA_FLAG_INTO],
[AS_VAR_PUSHDEF([pma_cache], [pma_cv_flag_$2])dnl
AC_CACHE_CHECK([whether $CC takes $2], [pma_cache],
    [pma_saved=$[]$3
     $3="$[]$3 -Werror $2"
     $4([AC_LANG_PROGRAM([], [])],
        [AS_VAR_SET([pma_cache], [yes])], [AS_VAR_SET([pma_cache], [no])])
     $3=$pma_saved])
AS_VAR_IF([pma_cache], [yes], [AS_VAR_APPEND([$1], [" $2"])])
AS_VAR_POPDEF([pma_cache])dnl
])

AC_DEFUN([PMA_CFLAG], [PMA_FLAG_INTO([$1], [$2], [CFLAGS], [AC_COMPILE_IFELSE])])
AC_DEFUN([PMA_LDFLAG], [PMA_FLAG_INTO([$1], [$2], [LDFLAGS], [AC_LINK_IFELSE])])
