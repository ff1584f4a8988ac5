// Package early refuses, before Go's runtime starts, limits under which the runtime itself fails with a dump: an address
// space (ulimit -v) or data (ulimit -d) that is too small for its reservations. A program has the check by importing it:
//
//	import _ "github.com/xtts-host/xtts-host/host/limits/early"
package early

/*
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

// What Go's runtime and its threads reserve at the start, in MiB; below it, starts failed with and without a run.
enum { least_space = 1536, least_data = 192 };

static void refuse_below(int resource, const char *what, const char *letter, unsigned long least)
{
	struct rlimit limit;
	if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >> 20 >= least)
		return;
	char text[400];
	int n = snprintf(text, sizeof text,
		"error: %s is limited to %lu MiB (ulimit -%s), and the program needs at least %lu MiB to start\n"
		"hint: ulimit -%s unlimited, and limit memory by a cgroup instead (systemd-run -p MemoryMax=4G, docker run --memory 4g)\n",
		what, (unsigned long)(limit.rlim_cur >> 20), letter, least, letter);
	if (write(2, text, n) < 0)
		_exit(1);
	_exit(2);
}

// The C library calls a constructor before it calls main, which starts Go's runtime.
__attribute__((constructor)) static void refuse_early(void)
{
	refuse_below(RLIMIT_AS, "the address space", "v", least_space);
	refuse_below(RLIMIT_DATA, "the memory for data", "d", least_data);
}
*/
import "C"
