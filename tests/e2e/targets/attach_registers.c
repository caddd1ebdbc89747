// Holds known values in every register, every vector and the red zone below its stack, and looks at them again and
// again, so that it notices when somebody makes the thread do something else and does not give everything back. One
// thread, always running. Prints "ready", and at SIGTERM "fine" or "wrong".
#include <signal.h>
#include <stdio.h>

unsigned char pattern[16 * 32];
long spin(long rounds);

__asm__(".globl spin\n"
        "spin:\n"
        "  pushq %rbx\n  pushq %rbp\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rdi, %rax\n"
        ".irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
        "  vmovdqu pattern + 32 * \\i(%rip), %ymm\\i\n"
        ".endr\n"
        ".irp r, rbx,rbp,rcx,rdx,rsi,rdi,r8,r9,r10,r11,r12,r13,r14,r15\n"
        "  leaq 7f - spin + pattern(%rip), %\\r\n"
        "7:\n"
        ".endr\n"
        ".irp i, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16\n"
        "  movq $1234567 + \\i, -8 * \\i(%rsp)\n"
        ".endr\n"
        "1:\n"
        "  decq %rax\n"
        "  jnz 1b\n"
        "  movl $1, %eax\n"
        ".irp i, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16\n"
        "  cmpq $1234567 + \\i, -8 * \\i(%rsp)\n"
        "  jne 2f\n"
        ".endr\n"
        ".irp r, rbp,rcx,rdx,rsi,rdi,r8,r9,r10,r11,r12,r13,r14,r15\n"
        "  subq %rbx, %\\r\n"
        "  cmpq $0, %\\r\n"
        "  je 2f\n"
        "  cmpq $256, %\\r\n"
        "  ja 2f\n"
        ".endr\n"
        ".irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
        "  vpcmpeqb pattern + 32 * \\i(%rip), %ymm\\i, %ymm\\i\n"
        "  vpmovmskb %ymm\\i, %ecx\n"
        "  cmpl $-1, %ecx\n"
        "  jne 2f\n"
        ".endr\n"
        "  xorl %eax, %eax\n"
        "2:\n"
        "  vzeroupper\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbp\n  popq %rbx\n"
        "  retq\n");

static volatile sig_atomic_t stop = 0;
static void on_term(int number) {
  (void)number;
  stop = 1;
}

int main(void) {
  for (unsigned i = 0; i < sizeof pattern; ++i) pattern[i] = (unsigned char)(i * 37 + 11);
  signal(SIGTERM, on_term);
  puts("ready");
  fflush(stdout);
  long wrong = 0;
  while (stop == 0) wrong += spin(1000000);
  puts(wrong == 0 ? "fine" : "wrong");
  return 0;
}
