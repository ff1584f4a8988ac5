"""answer.py QUESTION KEYS COMMAND...: runs a command on a terminal of 80 columns, and types KEYS once it shows QUESTION.

It prints what the terminal shows and whether it shows what is typed after the end, and exits with the command's status.
"""

import fcntl, os, pty, signal, struct, sys, termios

question, keys, command = sys.argv[1], sys.argv[2].encode().decode("unicode_escape"), sys.argv[3:]
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))  # lines are folded where the width is known
    os.execvp(command[0], command)
signal.alarm(60)  # of a question that never comes
shown, asked = b"", False
while True:
    try:
        data = os.read(terminal, 65536)
    except OSError:  # the command has ended
        break
    if not data:
        break
    shown += data
    if not asked and question.encode() in shown:
        asked = True
        os.write(terminal, keys.encode())
    if asked:
        echo = termios.tcgetattr(terminal)[3] & termios.ECHO
print(shown.decode().replace("\r", ""), "the echo is", "on" if asked and echo else "off")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
