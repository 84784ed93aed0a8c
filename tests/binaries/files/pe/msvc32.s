# 32-bit code as MSVC makes it: no unwind data, and tables between the functions.
    .intel_syntax noprefix
    .text

    .globl _entry@12
_entry@12:
    push 3
    call sparse
    call pair
    add esp, 4
    push 2
    call dword ptr [handlers]
    add esp, 4
    ret 12
    .p2align 4, 0xCC

sparse:                         # case 1, 5: one; 2, 30: two; 7: three; else: none
    push ebp
    mov ebp, esp
    mov eax, dword ptr [ebp + 8]
    dec eax
    cmp eax, 29
    ja Lnone
    movzx eax, byte ptr [eax + indices]
    jmp dword ptr [eax*4 + targets]
    .p2align 4, 0x90
Lone:                           # aligned as a function would be
    mov eax, 10
    pop ebp
    ret
    .p2align 4, 0x90
Ltwo:
    mov eax, 20
    pop ebp
    ret
Lthree:
    push 3
    call leaf
    add esp, 4
    pop ebp
    ret
Lnone:
    xor eax, eax
    pop ebp
    ret
    .p2align 2, 0x90
targets:
    .long Lone, Ltwo, Lthree, Lnone
indices:
    .byte 0, 1, 3, 3, 0, 3, 2
    .fill 22, 1, 3
    .byte 1
    .p2align 4, 0xCC

pair:                           # two cases, both aligned
    mov eax, dword ptr [esp + 4]
    and eax, 1
    jmp dword ptr [eax*4 + pairs]
    .p2align 4, 0xCC
Leven:
    mov eax, 2
    ret
    .p2align 4, 0xCC
Lodd:
    mov eax, 1
    ret
    .p2align 4, 0xCC
pairs:
    .long Leven, Lodd
    .p2align 4, 0xCC

leaf:                           # only calls lead here
    mov eax, dword ptr [esp + 4]
    inc eax
    ret
    .p2align 4, 0xCC

pointed:                        # only a pointer in data leads here
    mov eax, dword ptr [esp + 4]
    test eax, eax
    jle Lpointed
    dec eax
Lpointed:
    ret
    .p2align 4, 0xCC

    .section .rdata, "dr"
    .p2align 2
handlers:
    .long pointed
