"""Functions that a compiler or linker adds to every file, whatever its source is."""

from __future__ import annotations

import re

START_AND_END = frozenset(
    {
        "_init",
        "_fini",
        "_start",
        "_start_c",
        "__start",
        "call_weak_fn",
        "call_gmon_start",
        "__gmon_start__",
        "frame_dummy",
        "register_tm_clones",
        "deregister_tm_clones",
        "__do_global_dtors_aux",
        "__do_global_ctors_aux",
        "__do_global_dtors",
        "__do_global_ctors",
        "__libc_csu_init",
        "__libc_csu_fini",
        "_dl_relocate_static_pie",
        "_MIPS_STUBS_",
        "__stack_chk_fail_local",
        "init_have_lse_atomics",
        "__init_cpu_features",
        "__cpu_indicator_init",
        "__main",
        "mainCRTStartup",
        "WinMainCRTStartup",
        "wmainCRTStartup",
        "DllMainCRTStartup",
        "_DllMainCRTStartup",
        "__tmainCRTStartup",
        "_CRT_INIT",
        "pre_c_init",
        "pre_cpp_init",
        "_pei386_runtime_relocator",
        "__security_init_cookie",
        "__security_check_cookie",
        "__report_gsfailure",
        "__chkstk",
        "___chkstk",
        "___chkstk_ms",
        "__alloca_probe",
    }
)
"""What runs before and after the code of a file, by gcc, clang, MinGW and MSVC."""
HELPERS = re.compile(
    r"__x86\.get_pc_thunk\.\w+|__(?:i686|x86)\.\w+_thunk\.\w+|__x86_(?:indirect|return)_thunk\w*"
    r"|__aeabi_\w+|__gnu_\w+(?:_ieee|_alternative|_builtin)"
    r"|__aarch64_(?:cas|swp|ldadd|ldclr|ldeor|ldset)\d+_\w+"
    r"|__(?:u?div|u?mod|u?divmod|mul|neg|ashl|ashr|lshr|u?cmp)[sdt]i[234]"
    r"|__(?:clz|ctz|clrsb|ffs|parity|popcount|bswap)[sdt]i2|__(?:abs|add|sub|mul|neg)v[sdt]i[23]"
    r"|__(?:add|sub|mul|div|neg|eq|ne|lt|le|gt|ge|cmp|unord)[sdxt]f[23]"
    r"|__(?:extend|trunc)[hsdxt]f[sdxt]f2|__(?:fix|fixuns)[sdxt]f[sdt]i"
    r"|__(?:float|floatun)[sdt]i[sdxt]f|__(?:pow|mul|div)[sdxt][cf][i23]"
    r"|__scrt_\w+|__mingw_\w+|_RTC_\w+"
)
"""What stands for an operation that the processor does not have, and parts of such starts."""


def is_runtime_code(name: str) -> bool:
    """Whether a function of this name is the compiler's: that two files have it says nothing of
    where they are from."""
    return name in START_AND_END or HELPERS.fullmatch(name) is not None
