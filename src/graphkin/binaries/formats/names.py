"""Names of symbols: as text, and those of library functions that never return."""

from __future__ import annotations

from collections.abc import Mapping

_NORETURN = """
    abort exit _exit _Exit quick_exit err errx verr verrx pthread_exit thrd_exit longjmp
    _longjmp siglongjmp __longjmp_chk __stack_chk_fail __stack_chk_fail_local __chk_fail
    __fortify_fail __assert_fail __assert __assert_perror_fail __assert_rtn __assert2
    __libc_fatal __libc_init_first_fail __cxa_throw __cxa_rethrow __cxa_bad_cast
    __cxa_bad_typeid __cxa_throw_bad_array_new_length __cxa_pure_virtual __cxa_call_unexpected
    __cxa_call_terminate _Unwind_Resume _ZSt9terminatev _ZSt10unexpectedv __clang_call_terminate
    __ubsan_handle_builtin_unreachable __ubsan_handle_missing_return _ZSt17__throw_bad_allocv
    _ZSt20__throw_length_errorPKc _ZSt19__throw_logic_errorPKc _ZSt20__throw_out_of_rangePKc
    _ZSt24__throw_out_of_range_fmtPKcz _ZSt24__throw_invalid_argumentPKc _ZSt16__throw_bad_castv
    _ZSt25__throw_bad_function_callv _ZSt28__throw_bad_array_new_lengthv rust_begin_unwind
    rust_panic ExitProcess ExitThread RaiseFailFastException _CxxThrowException _invoke_watson
    _purecall __report_gsfailure __fastfail
"""
_GO_BOUNDS = "Index SliceAlen SliceAcap SliceB Slice3Alen Slice3Acap Slice3B Slice3C"
_GO_NORETURN = """
    throw throwinit fatal gopanic block panicwrap panicdivide panicshift panicrangestate
    panicdottypeE panicdottypeI panicnildottype panicmakeslicelen panicmakeslicecap
    panicunsafeslicelen panicunsafeslicenilptr panicunsafestringlen panicunsafestringnilptr
    panicSliceConvert goPanicSliceConvert panicBounds panicExtend
"""
NORETURN = frozenset(
    [
        *_NORETURN.split(),
        *(f"runtime.{name}" for name in _GO_NORETURN.split()),
        *(
            f"runtime.{verb}{bound}{sign}"
            for verb in ("panic", "goPanic", "panicExtend", "goPanicExtend")
            for bound in _GO_BOUNDS.split()
            for sign in ("", "U")
        ),
    ]
)
"""A call to one of these ends its block."""
STACK_FAILURES = frozenset(["stack_chk_fail", "stack_chk_fail_local"])
"""Those that a function calls when its stack was overwritten, without underscores in front."""


def text(name: str | bytes) -> str:
    """LIEF gives bytes for names that are not UTF-8; each of those is kept, as a surrogate."""
    return name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else name


def is_noreturn(name: str) -> bool:
    """Whether a call to ``name`` never comes back; versions and Mach-O's underscore aside."""
    bare = name.partition("@")[0]
    return bare in NORETURN or (bare.startswith("_") and bare[1:] in NORETURN)


def stack_failures(noreturn: Mapping[int, str]) -> frozenset[int]:
    """Those of the functions that never return that report an overwritten stack."""
    return frozenset(
        address
        for address, name in noreturn.items()
        if name.partition("@")[0].lstrip("_") in STACK_FAILURES
    )
