// A program that changes while tacho attaches to it. Its main thread waits; another one does what a letter from
// standard input says: x runs another program (exec), f forks a child that lives for a while and prints its number, e
// ends the program. Any other letter is printed.
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <thread>

int main() {
  std::thread([] {
    printf("ready\n");
    fflush(stdout);
    for (char letter = 0; read(STDIN_FILENO, &letter, 1) == 1;) {
      if (letter == 'x') execl("/bin/sleep", "sleep", "30", nullptr);
      if (letter == 'e') _exit(0);
      if (letter == 'f') {
        const pid_t child = fork();
        if (child == 0) {
          sleep(30);
          _exit(0);
        }
        printf("%d\n", static_cast<int>(child));
      } else {
        printf("%c\n", letter);
      }
      fflush(stdout);
    }
    _exit(0);
  }).detach();
  for (;;) pause();
}
