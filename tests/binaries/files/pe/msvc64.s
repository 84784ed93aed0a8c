# What MSVC makes of switches and of frames, written by hand: tables that count from the image's
# base, a table of bytes behind them, and unwind data in several parts.
    .intel_syntax noprefix
    .text

    .globl leaf
leaf:                           # touches no stack, so it has no unwind data
    lea eax, [rcx + 1]
    ret
    .p2align 4, 0xCC

    .globl sparse
sparse:                         # case 1, 5: one; 2, 30: two; 7: three; else: none
    sub rsp, 40
.Lsparse_body:
    dec ecx
    cmp ecx, 29
    ja .Lnone
    movsxd rax, ecx
    lea rdx, [rip + __ImageBase]
    movzx eax, byte ptr [rdx + rax + indices@IMGREL]
    mov ecx, dword ptr [rdx + rax*4 + targets@IMGREL]
    add rcx, rdx
    jmp rcx
.Lone:
    mov ecx, 10
    call leaf
    jmp .Lout
.Ltwo:
    mov ecx, 20
    call hidden
    jmp .Lout
.Lthree:
    mov ecx, 30
    call leaf
    add eax, eax
    jmp .Lout
.Lnone:
    xor eax, eax
.Lout:
    add rsp, 40
    ret
.Lsparse_end:
    .p2align 2, 0xCC
targets:
    .long .Lone@IMGREL, .Ltwo@IMGREL, .Lthree@IMGREL, .Lnone@IMGREL
indices:
    .byte 0, 1, 3, 3, 0, 3, 2
    .fill 22, 1, 3
    .byte 1
    .p2align 4, 0xCC

hidden:                         # a leaf that only calls lead to
    imul eax, ecx, 3
    ret
    .p2align 4, 0xCC

    .globl shrunk
shrunk:                         # the frame grows where it is needed: 3 ranges, one function
    sub rsp, 40
.Lshrunk_body:
    test ecx, ecx
    je .Lshrunk_exit
.Lshrunk_second:
    mov qword ptr [rsp + 48], rbx
.Lshrunk_second_body:
    mov ebx, ecx
    call leaf
    test eax, eax
    jns .Lkept
    jmp .Lcold
.Lkept:
    add eax, ebx
    mov rbx, qword ptr [rsp + 48]
.Lshrunk_third:
.Lshrunk_exit:
    add rsp, 40
    ret
.Lshrunk_end:
    .p2align 4, 0xCC

    .globl after
after:
    sub rsp, 40
.Lafter_body:
    call shrunk
    add rsp, 40
    ret
.Lafter_end:
    .p2align 4, 0xCC

.Lcold:                         # the rarely used part of ``shrunk``, behind another function
    call leaf
    neg eax
    jmp .Lkept
.Lcold_end:

    .section .xdata, "dr"
    .p2align 2
small:                          # version 1, 4 bytes of prolog, 1 code: sub rsp, 40
    .byte 1, 4, 1, 0
    .byte 4, 0x42, 0, 0
saved:                          # chained to the entry of ``shrunk``; rbx is saved
    .byte 0x21, 5, 2, 0
    .byte 5, 0x34, 6, 0
    .long shrunk@IMGREL, .Lshrunk_second@IMGREL, small@IMGREL
chained:                        # chained to the entry of ``shrunk``, without codes
    .byte 0x21, 0, 0, 0
    .long shrunk@IMGREL, .Lshrunk_second@IMGREL, small@IMGREL

    .section .pdata, "dr"
    .p2align 2
    .long sparse@IMGREL, .Lsparse_end@IMGREL, small@IMGREL
    .long shrunk@IMGREL, .Lshrunk_second@IMGREL, small@IMGREL
    .long .Lshrunk_second@IMGREL, .Lshrunk_third@IMGREL, saved@IMGREL
    .long .Lshrunk_third@IMGREL, .Lshrunk_end@IMGREL, chained@IMGREL
    .long after@IMGREL, .Lafter_end@IMGREL, small@IMGREL
    .long .Lcold@IMGREL, .Lcold_end@IMGREL, saved@IMGREL
