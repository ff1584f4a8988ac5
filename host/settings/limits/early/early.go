// Package early checks limits before Go's runtime starts. Under some limits the runtime itself fails, with a dump: too
// small an address space (ulimit -v) or too little data (ulimit -d) for what it reserves, or too few threads
// (ulimit -u). The package refuses them with a message. A program has the check by importing it:
//
//	import _ "github.com/xtts-host/xtts-host/host/settings/limits/early"
package early

/*
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

// The least values, in MiB and in threads. Go's runtime and its threads reserve so much at the start. Below these
// values starts failed, with and without a run. A run on two processors has some 25 threads.
enum { least_space = 1536, least_data = 192, least_threads = 24 };

// refuse_below ends the process if the soft limit, in units of 2^shift, is below the least value.
static void refuse_below(int resource, int shift, unsigned long least, const char *what, const char *unit,
	const char *letter, const char *instead)
{
	struct rlimit limit;
	if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >> shift >= least)
		return;
	char text[400];
	int n = snprintf(text, sizeof text,
		"error: %s limited to %lu%s (ulimit -%s), and the program needs at least %lu%s to start\n"
		"hint: ulimit -%s unlimited%s\n",
		what, (unsigned long)(limit.rlim_cur >> shift), unit, letter, least, unit, letter, instead);
	if (write(2, text, n) < 0)
		_exit(1);
	_exit(2);
}

// The C library calls a constructor before it calls main, which starts Go's runtime.
__attribute__((constructor)) static void refuse_early(void)
{
	const char *cgroup = ", and limit memory by a cgroup instead (systemd-run -p MemoryMax=4G, docker run --memory 4g)";
	refuse_below(RLIMIT_AS, 20, least_space, "the address space is", " MiB", "v", cgroup);
	refuse_below(RLIMIT_DATA, 20, least_data, "the memory for data is", " MiB", "d", cgroup);
	if (getuid() != 0) // the limit does not hold for root
		refuse_below(RLIMIT_NPROC, 0, least_threads, "processes and threads of the user are", "", "u", "");
}
*/
import "C"
