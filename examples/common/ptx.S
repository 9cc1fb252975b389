/* The kernels' PTX as a NUL-terminated string inside the program: assemble with -DPTX="file". */
    .section .rodata
    .globl example_ptx
example_ptx:
    .incbin PTX
    .byte 0
    .section .note.GNU-stack, "", @progbits
