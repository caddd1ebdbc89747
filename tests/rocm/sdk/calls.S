# The function that stands in for every HIP call (sdk.cpp). A stub says which one it is; the common part keeps the arguments,
# lets imitation_enter() note the call, and goes on with HIP's function, which returns to `back`. Arguments on the stack stay
# where they are, so the return address is kept aside instead of being pushed again.
  .text
  .p2align 4
  .globl imitation_stubs
  .hidden imitation_stubs
imitation_stubs:
  .set index, 0
  .rept 700
  .p2align 4
  movl $index, %r11d
  jmp runtime
  .set index, index + 1
  .endr
  .set index, 0
  .rept 700
  .p2align 4
  movl $index, %r11d
  jmp compiler
  .set index, index + 1
  .endr

  .p2align 4
runtime:
  movabsq $0x500000000, %rax
  jmp both
compiler:
  movabsq $0x600000000, %rax
both:
  orq %rax, %r11
  popq %r10                       # where the call returns to
  subq $120, %rsp                 # six arguments, eight in vector registers (their low halves)
  movq %rdi, 0(%rsp)
  movq %rsi, 8(%rsp)
  movq %rdx, 16(%rsp)
  movq %rcx, 24(%rsp)
  movq %r8, 32(%rsp)
  movq %r9, 40(%rsp)
  movsd %xmm0, 48(%rsp)
  movsd %xmm1, 56(%rsp)
  movsd %xmm2, 64(%rsp)
  movsd %xmm3, 72(%rsp)
  movsd %xmm4, 80(%rsp)
  movsd %xmm5, 88(%rsp)
  movsd %xmm6, 96(%rsp)
  movsd %xmm7, 104(%rsp)
  movq %r11, %rdi
  movq %r10, %rsi
  subq $8, %rsp                   # 16 bytes alignment at a call
  call imitation_enter
  addq $8, %rsp
  movq 0(%rsp), %rdi
  movq 8(%rsp), %rsi
  movq 16(%rsp), %rdx
  movq 24(%rsp), %rcx
  movq 32(%rsp), %r8
  movq 40(%rsp), %r9
  movsd 48(%rsp), %xmm0
  movsd 56(%rsp), %xmm1
  movsd 64(%rsp), %xmm2
  movsd 72(%rsp), %xmm3
  movsd 80(%rsp), %xmm4
  movsd 88(%rsp), %xmm5
  movsd 96(%rsp), %xmm6
  movsd 104(%rsp), %xmm7
  addq $120, %rsp
  leaq back(%rip), %r10
  pushq %r10
  jmp *%rax
back:
  subq $32, %rsp                  # the result
  movq %rax, 0(%rsp)
  movq %rdx, 8(%rsp)
  movsd %xmm0, 16(%rsp)
  call imitation_leave
  movq %rax, %r10
  movq 0(%rsp), %rax
  movq 8(%rsp), %rdx
  movsd 16(%rsp), %xmm0
  addq $32, %rsp
  jmp *%r10

  .section .note.GNU-stack,"",@progbits
